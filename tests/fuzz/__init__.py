"""Random and coverage-guided input for parsers, readers, kernels and attached tables."""
