"""Local means and affinities of samples, by their nearest neighbours."""
