"""Streaming second moments of the classes."""
