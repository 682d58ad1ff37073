"""Labels and measured targets, in memory: no rows, no engine, no file."""
