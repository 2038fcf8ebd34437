"""Parts of messages: commands to run next, and numbers of things."""

import shlex

from nearsim_db.records import DEFAULT


def suggested_command(command: str, collection: str, profile: str = DEFAULT, *more: str) -> str:
    """Return a command for a collection and one of its profiles, such as "nearsim reindex diff -p body -c news".

    Default names are omitted. The commands of `nearsim profile` always take the profile, as an argument. `more` are
    words at the end.
    """
    words = ["nearsim", *command.split()]
    if command.startswith("profile "):
        words.append(profile)
    elif profile != DEFAULT:
        words += ["-p", profile]
    if collection != DEFAULT:
        words += ["-c", collection]
    return shlex.join([*words, *more])


def none_usable(records: int) -> str:
    """Return the message for input without a usable record."""
    return "the only record is not usable" if records == 1 else f"none of the {records:,} records is usable"


def count_of(number: int, noun: str) -> str:
    """Return a number of things, such as "1 document" or "2,000 documents"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
