"""Rows converted once to raw files."""
