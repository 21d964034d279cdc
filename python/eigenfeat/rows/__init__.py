"""Rows in memory or in blocks: passes over them, their weights and targets."""
