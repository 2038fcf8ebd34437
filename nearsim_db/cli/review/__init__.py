"""The review desk: pages in a browser on which people judge pairs; `nearsim review` serves them."""
