"""Rows, series and results that all of this family share."""
