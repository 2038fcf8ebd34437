"""The command `nearsim build`: finish an index."""

from nearsim_db.cli import formats, options
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.progress import progress_bars


def build(
    collection: options.Collection = options.DEFAULT,
    jobs: options.Jobs = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Finish an interrupted build, and index changes that applications made in SQL."""
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.index import Index

    with (
        progress_bars(quiet or format.is_machine) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        index.database.use_jobs(jobs)
        index.build()
        profiles = profiles_output.live_profile_stats(index)
    if format.is_machine:
        print_document(
            format, {"collection": collection, "profiles": [profiles_output.outline(one) for one in profiles]}
        )
    elif not quiet:
        profiles_output.print_profiles(profiles)
    terminal.print_warnings(index.warnings)
