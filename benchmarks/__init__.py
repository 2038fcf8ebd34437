"""Generators of synthetic corpora and measurements; no part of the installed package."""
