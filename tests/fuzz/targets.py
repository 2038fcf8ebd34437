"""All targets by name."""

from tests.fuzz.attach import ATTACH
from tests.fuzz.contract import Target
from tests.fuzz.files import FILES
from tests.fuzz.kernels import KERNELS
from tests.fuzz.parsers import PARSERS
from tests.fuzz.texts import TEXTS

TARGETS: dict[str, Target] = {**PARSERS, **TEXTS, **KERNELS, **FILES, **ATTACH}
