"""nearsim next to the tools that people use instead, on the same machine in the same run."""
