"""How a tiling is decided."""
