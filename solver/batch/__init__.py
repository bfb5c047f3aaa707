"""Tables of cases and tilings, row by row."""
