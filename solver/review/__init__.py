"""Tilings somebody already has: legal or not, how far from the optimum, what to change."""
