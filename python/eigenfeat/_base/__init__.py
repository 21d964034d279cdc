"""Tools that all folders share: checks of arguments, threads, labels, archives, the loaded core."""
