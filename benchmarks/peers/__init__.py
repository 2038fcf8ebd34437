"""Compare nearsim with the tools that people use instead, on the same machine and in the same run."""
