"""What the LDG family solves, chooses and keeps."""
