"""Local discriminative Gaussian dimension reduction and its relatives."""

__all__: list[str] = []
