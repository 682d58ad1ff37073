"""Labels in files."""
