"""What was proven, confirmed without CP-SAT: enumeration, certificates."""
