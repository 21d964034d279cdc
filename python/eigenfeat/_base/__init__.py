"""Shared by all folders: checks of arguments, threads, labels, archives, the loaded core."""
