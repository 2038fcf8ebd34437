"""Fuzz a target: random inputs from seeds and tokens, or coverage-guided ones by atheris (extra `fuzz`).

    python -m tests.fuzz json-lines --inputs 1000000
    python -m tests.fuzz recipe --inputs 100000 --engine atheris

Prints a JSON object with the number of inputs checked; the exit code is 1 if an input failed. A batch that takes more
than 60 s ends the process with a traceback. `--findings` names a folder for the inputs that failed.
"""

import faulthandler
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Option

_HANG_SECONDS = 60
_REPORT_SECONDS = 30


def main(
    target: str,
    inputs: Annotated[int, Option(help="Number of inputs at most.")] = 100_000,
    seed: Annotated[int, Option(help="Seed of the inputs.")] = 1,
    minutes: Annotated[float, Option(help="Length of the run at most.")] = 600,
    engine: Annotated[Literal["random", "atheris"], Option(help="How inputs are made.")] = "random",
    findings: Annotated[Path | None, Option(help="Folder for inputs that failed.")] = None,
) -> None:
    """Run a target; exit with 1 if an input failed."""
    if engine == "atheris":
        _run_atheris(target, inputs, seed, minutes)
    _run_random(target, inputs, seed, minutes, findings)


def _run_random(target: str, inputs: int, seed: int, minutes: float, folder: Path | None) -> None:
    from tests.fuzz.loop import Run, run
    from tests.fuzz.targets import TARGETS

    shown = time.monotonic()

    def report(done: Run) -> None:
        nonlocal shown
        faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True)
        if time.monotonic() - shown > _REPORT_SECONDS:
            shown = time.monotonic()
            print(f"{target}: {done.inputs:,} inputs, {done.seconds:.0f} s", file=sys.stderr)

    done = run(TARGETS[target], inputs, seed, time.monotonic() + 60 * minutes, report)
    faulthandler.cancel_dump_traceback_later()
    for number, finding in enumerate(done.findings):
        print(f"{finding.given[:2_000]}\n{finding.problem}", file=sys.stderr)
        if folder is not None:
            folder.mkdir(exist_ok=True)
            (folder / f"{target}-{number}.txt").write_text(f"{finding.given}\n{finding.problem}")
    print(json.dumps({
        "target": target, "inputs": done.inputs, "seed": seed, "cpu_seconds": round(done.seconds, 1),
        "slowest_batch_seconds": round(done.slowest_batch, 2), "findings": len(done.findings),
    }))  # fmt: skip
    sys.exit(1 if done.findings else 0)


def _run_atheris(name: str, inputs: int, seed: int, minutes: float) -> None:
    """Never returns: libFuzzer ends the process, with a report and the input if one fails."""
    import atheris

    with atheris.instrument_imports(include=["nearsim_db", "tomllib"]):
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.contract import Texts

    target = TARGETS[name]
    if not isinstance(target.draw, Texts):
        sys.exit(f"{name} takes no texts; use --engine random")
    with target.open() as check, tempfile.TemporaryDirectory() as corpus:
        for number, text in enumerate(target.draw.seeds):
            Path(corpus, f"seed{number}").write_bytes(text.encode("utf-8", "surrogateescape"))

        def check_one(data: bytes) -> None:
            check([data.decode("utf-8", "surrogateescape")], random.Random(0))

        limits = [f"-runs={inputs}", f"-seed={seed}", f"-max_total_time={int(60 * minutes)}"]
        arguments = [sys.argv[0], *limits, "-timeout=10", "-max_len=4096", "-print_final_stats=1", corpus]
        atheris.Setup(arguments, check_one)
        atheris.Fuzz()


if __name__ == "__main__":
    typer.run(main)
