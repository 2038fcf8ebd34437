"""Measurements, and generators of synthetic corpora; not part of the installed package."""
