"""A soak: random SQL writers, workers and commands that are killed at random, compared with a plain-Python oracle."""
