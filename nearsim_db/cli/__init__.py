"""The command line `nearsim`: it parses, calls and renders. What is heavy is imported by the commands that need it."""


def main() -> None:
    """Run the command line with the process's arguments and exit."""
    from nearsim_db.store.settings import prepare_process

    prepare_process()
    from nearsim_db.cli.app import app

    app(prog_name="nearsim")
