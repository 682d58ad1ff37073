"""From named columns to features."""
