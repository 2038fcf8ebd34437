"""`python -m nearsim_db` is the command line."""

from nearsim_db.cli import main

main()
