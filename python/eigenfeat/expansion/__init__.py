"""Half waves of projections, and layers of them."""
