"""The labelling page: a server on this machine, and what it knows of rows, labels and a model."""
