"""Local means and affinities of rows, by their nearest neighbours."""
