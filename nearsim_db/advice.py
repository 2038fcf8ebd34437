"""Commands that people are told to run, as they can be copied."""

import shlex

DEFAULT = "default"  # what a collection or a profile is called that need not be named


def advice(command: str, collection: str, profile: str = DEFAULT, *more: str) -> str:
    """A command for a collection, and a profile of it, as "nearsim reindex diff body -c news".

    What is called default is left out. The commands of `nearsim reindex` and `nearsim profile` take the profile as an
    argument, and the latter always.
    """
    words = ["nearsim", *command.split()]
    if command.startswith("profile ") or profile != DEFAULT:
        words += [profile] if command.startswith(("reindex ", "profile ")) else ["-p", profile]
    if collection != DEFAULT:
        words += ["-c", collection]
    return shlex.join([*words, *more])
