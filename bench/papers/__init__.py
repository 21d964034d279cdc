"""The experiments of the papers on data that is at hand: ``python -m bench.papers``."""
