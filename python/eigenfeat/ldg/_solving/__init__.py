"""Scatters, eigenproblems, parameter choices and fitted results of the LDG family."""
