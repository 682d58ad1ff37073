"""Attacks on biglp at random, with a seed each: see ``docs/reliability.md``."""
