"""From the sums over all rows to an answer for each row."""
