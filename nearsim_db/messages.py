"""Parts of messages that several packages use: suggested commands, and counts such as "2 documents"."""

import shlex

from nearsim_db.records import DEFAULT


def suggested_command(command: str, collection: str, profile: str = DEFAULT, *last_words: str) -> str:
    """Return the command line for a collection and a profile, such as "nearsim reindex diff -p body -c news".

    Default names are omitted, except after `nearsim profile`, whose commands need the profile as an argument.
    """
    words = ["nearsim", *command.split()]
    if command.startswith("profile "):
        words.append(profile)
    elif profile != DEFAULT:
        words += ["-p", profile]
    if collection != DEFAULT:
        words += ["-c", collection]
    return shlex.join([*words, *last_words])


def none_usable(records: int) -> str:
    """Return the message for input without a usable record."""
    return "the only record is not usable" if records == 1 else f"none of the {records:,} records is usable"


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 document" or "2,000 documents"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
