"""Text in, band keys out, on one thread: nearsim with numba, nearsim with NumPy alone, datasketch in bulk.

python benchmarks/signing.py [--documents F.jsonl.gz] [--count 1000] [--rounds 7]

Character 5-shingles, k = 128, 32 bands of 4 rows. Without --documents the texts are 400-word stories of the synthetic
language: plain ASCII, and the same with curly quotes and a few accents. All take turns in one run; ratios are of
the same round. datasketch makes its shingles in Python (sets of bytes, the quickest way) and its MinHashes by
MinHash.bulk; with its default hash (SHA-1) and with xxhash.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
