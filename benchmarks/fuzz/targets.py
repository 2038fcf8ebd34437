"""All targets by name."""

from benchmarks.fuzz.attach import ATTACH
from benchmarks.fuzz.contract import Target
from benchmarks.fuzz.files import FILES
from benchmarks.fuzz.kernels import KERNELS
from benchmarks.fuzz.parsers import PARSERS
from benchmarks.fuzz.texts import TEXTS

TARGETS: dict[str, Target] = {**PARSERS, **TEXTS, **KERNELS, **FILES, **ATTACH}
