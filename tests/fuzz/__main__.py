"""Fuzz a target: random inputs from seeds and tokens, or coverage-guided ones by atheris (extra `fuzz`).

    python -m tests.fuzz json-lines --inputs 1000000
    python -m tests.fuzz recipe --inputs 100000 --engine atheris

Prints a JSON object with the number of inputs checked; the exit code is 1 if an input failed. A batch that takes more
than 60 s ends the process with a traceback. `--findings` names a folder for the inputs that failed.
"""

import argparse
import faulthandler
import json
import random
import sys
import tempfile
import time
from pathlib import Path

_HANG_SECONDS = 60
_REPORT_SECONDS = 30


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--engine", choices=["random", "atheris"], default="random")
    parser.add_argument("--findings", type=Path)
    options = parser.parse_args()
    if options.engine == "atheris":
        _run_atheris(options)
    return _run_random(options)


def _run_random(options: argparse.Namespace) -> int:
    from tests.fuzz.loop import Run, run
    from tests.fuzz.targets import TARGETS

    shown = time.monotonic()

    def report(done: Run) -> None:
        nonlocal shown
        faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True)
        if time.monotonic() - shown > _REPORT_SECONDS:
            shown = time.monotonic()
            print(f"{options.target}: {done.inputs:,} inputs, {done.seconds:.0f} s", file=sys.stderr)

    until = time.monotonic() + 60 * options.minutes
    done = run(TARGETS[options.target], options.inputs, options.seed, until, report)
    faulthandler.cancel_dump_traceback_later()
    for number, finding in enumerate(done.findings):
        print(f"{finding.given[:2_000]}\n{finding.problem}", file=sys.stderr)
        if options.findings is not None:
            options.findings.mkdir(exist_ok=True)
            (options.findings / f"{options.target}-{number}.txt").write_text(
                f"{finding.given}\n{finding.problem}"
            )
    print(json.dumps({
        "target": options.target, "inputs": done.inputs, "seed": options.seed, "cpu_seconds": round(done.seconds, 1),
        "slowest_batch_seconds": round(done.slowest_batch, 2), "findings": len(done.findings),
    }))  # fmt: skip
    return 1 if done.findings else 0


def _run_atheris(options: argparse.Namespace) -> None:
    """Never returns: libFuzzer ends the process, with a report and the input if one fails."""
    import atheris

    with atheris.instrument_imports(include=["nearsim_db", "tomllib"]):
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.contract import Texts

    target = TARGETS[options.target]
    if not isinstance(target.draw, Texts):
        sys.exit(f"{options.target} takes no texts; use --engine random")
    with target.open() as check, tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(target.draw.seeds):
            Path(corpus, f"seed{number}").write_bytes(seed.encode("utf-8", "surrogateescape"))

        def check_one(data: bytes) -> None:
            check([data.decode("utf-8", "surrogateescape")], random.Random(0))

        limits = [
            f"-runs={options.inputs}",
            f"-seed={options.seed}",
            f"-max_total_time={int(60 * options.minutes)}",
        ]
        arguments = [sys.argv[0], *limits, "-timeout=10", "-max_len=4096", "-print_final_stats=1", corpus]
        atheris.Setup(arguments, check_one)
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
