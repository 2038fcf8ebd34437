"""The command line `nearsim`: parse options, call the other packages, and print their results.

Commands import large libraries only when they need them, so that help and completion are fast.
"""


def main() -> None:
    """Run the command line with the arguments of the process, and exit."""
    from nearsim_db.store.settings import prepare_process

    prepare_process()
    from nearsim_db.cli.app import app

    app(prog_name="nearsim")
