"""Runs from files to files, without their printing."""
