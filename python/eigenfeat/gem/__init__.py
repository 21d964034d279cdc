"""GEM and its classifiers."""
