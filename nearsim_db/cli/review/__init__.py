"""The review desk of `nearsim review`: web pages on which people judge pairs."""
