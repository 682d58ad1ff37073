"""HTML: a report for people."""
