"""Run the command line with `python -m nearsim_db`."""

from nearsim_db.cli import main

main()
