"""A fit from checked parameters to a model."""
