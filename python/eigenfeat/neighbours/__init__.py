"""Local means of samples, by their nearest neighbours."""
