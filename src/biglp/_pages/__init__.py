"""Pages for people: what a browser shows of rows, labels and models."""
