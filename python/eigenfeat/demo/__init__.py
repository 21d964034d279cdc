"""What ``eigenfeat demo`` shows."""
