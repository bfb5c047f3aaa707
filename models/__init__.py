"""What is decided: case, plan, algebra, rules, latency and branches."""
