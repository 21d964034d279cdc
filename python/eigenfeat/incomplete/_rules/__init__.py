"""Rules that decide incomplete rows, their correction and calibration."""
