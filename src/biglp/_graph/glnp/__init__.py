"""GLNP: the factor is learnt (section 2.3 of the paper)."""
