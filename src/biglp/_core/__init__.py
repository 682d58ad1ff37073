"""What every other room stands on: arrays, blocks, files, progress, errors."""
