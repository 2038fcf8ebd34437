"""The live index under load from other applications: plain-SQL writers, worker processes, and the final state."""
