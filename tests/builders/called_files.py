"""Which files of nearsim_db a command runs through.

python -m tests.builders.called_files PATH ARGUMENT... runs `nearsim ARGUMENT...` and writes the files to PATH.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import nearsim_db

_PACKAGE = Path(nearsim_db.__file__).parent
_IMPORTING = "<frozen importlib._bootstrap>"


def called_files(folder: Path, environment: Mapping[str, str], *arguments: object) -> str:
    """Run `nearsim` in a process of its own, and list the files whose functions it calls, in the order of first calls.

    Calls during imports are left out, so files that have only constants and types are not listed. The order of calls
    in different threads varies from run to run. Each thread therefore has its own paragraph, with the files that are
    not in a paragraph before it. Processes that the command starts are not followed.
    """
    path = folder / "called_files.txt"
    completed = subprocess.run(
        [sys.executable, "-m", __name__, str(path), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return path.read_text("utf-8")


class Recorder:
    """Records the files whose functions are called in this thread, and in threads that it starts."""

    def __init__(self) -> None:
        # By name of the thread: the files in the order of their first calls, and the functions that were called.
        self._files: dict[str, dict[str, None]] = {}
        self._seen: dict[str, set[CodeType]] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls while the block runs."""
        # Unlike settrace, setprofile also sees the calls of compiled kernels.
        threading.setprofile(self._record)
        sys.setprofile(self._record)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _record(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        code, thread = frame.f_code, threading.current_thread().name
        seen = self._seen.setdefault(thread, set())
        if code in seen:
            return

        path = Path(code.co_filename)
        if not path.is_relative_to(_PACKAGE):
            seen.add(code)
        elif not _is_importing(frame):
            seen.add(code)
            self._files.setdefault(thread, {}).setdefault(str(path.relative_to(_PACKAGE)))

    def paragraphs(self) -> str:
        """Return the number of files, and a paragraph of files for each thread. The main thread comes first."""
        main = threading.main_thread().name
        listed, paragraphs = set[str](), list[str]()
        for thread in sorted(self._files, key=lambda name: (name != main, name)):
            files = [file for file in self._files[thread] if file not in listed]
            listed.update(files)
            if files:
                paragraphs.append("\n".join([f"{thread}:", *files]))
        return "\n\n".join([f"{len(listed)} files", *paragraphs]) + "\n"


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            return True
        frame = frame.f_back
    return False


def _main(path: str, *arguments: str) -> None:
    from nearsim_db.cli import main

    recorder = Recorder()
    sys.argv = ["nearsim", *arguments]
    try:
        with recorder.recording():
            main()
    finally:
        Path(path).write_text(recorder.paragraphs(), "utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
