"""Minima and certificates over balls, dominance, and Gaussians of prefixes."""
