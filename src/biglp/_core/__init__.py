"""What every other folder uses: arrays, blocks, memory, files, progress, errors."""
