"""Early classifiers without that promise, costs of waiting, and scores."""
