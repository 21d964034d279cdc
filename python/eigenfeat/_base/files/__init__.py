"""Files of models and moments: arrays in an archive, written whole or not at all."""
