"""How a branch is solved: bounds, incumbent, proof, tie-break, and why there is no plan."""
