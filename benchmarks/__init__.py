"""Generators of synthetic corpora and measurements; not part of the installed package."""
