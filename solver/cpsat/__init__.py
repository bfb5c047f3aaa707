"""The CP-SAT interpreter: the only room that imports OR-Tools."""
