"""What an input is, and what a run on it would take."""
