"""GEM and LDG on sparse or memory-mapped rows of up to a million columns, by products of rows."""
