"""The report of a fit: one HTML file that needs no network and no script."""
