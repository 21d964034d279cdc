"""What every folder above rests on: checks of arguments, threads, labels, archives, the loaded core."""
