"""Tuning: propose a recipe from a sample of the user's documents, with the cost of each choice."""
