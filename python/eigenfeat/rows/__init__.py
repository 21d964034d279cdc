"""Rows wherever they lie: arrays, blocks, passes over them, their weights and targets."""
