"""Ranks of an MPI job."""
