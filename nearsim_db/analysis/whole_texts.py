"""Documents encoded by their whole normalised text, without sketches: those of equal texts are twins."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import msgspec
import numpy as np

from nearsim_db.errors import InputError
from nearsim_db.similarity.encoder import Content, Encoded, Encoder
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe.sections import Shingle
from nearsim_db.similarity.text import Shingler


class WholeTexts(Encoder):
    """Encodes documents so that those are twins whose texts are equal after normalisation, and there are no pairs.

    Raises InputError for a profile that compares vectors.
    """

    has_sketches = False

    def __init__(self, profile: Profile, backend: str | None = None, plain_characters: int = 0) -> None:
        super().__init__(profile, backend, plain_characters)
        if self.takes_vectors:
            raise InputError("--exact compares texts, but the recipe compares vectors (sketch.input)")
        by_characters = msgspec.structs.replace(profile.recipe, shingle=Shingle(scheme="char"))
        self._normaliser = Shingler(by_characters, self.backend)

    def _encode_chunk(self, contents: Sequence[Content], keep_features: bool) -> Encoded:
        texts = self._normaliser.canonical(cast(Sequence[str], contents))
        data, bounds = texts.data.data, list(pairwise(texts.offsets.tolist()))
        digests = b"".join([self._digest(data[begin:end]) for begin, end in bounds])
        return Encoded(
            (np.diff(texts.offsets) > 0).astype(np.int32),
            np.frombuffer(digests, "V16"),
            np.zeros((len(bounds), 0), self.family.dtype),
            np.zeros(len(bounds), np.uint64),
            tuple(np.zeros(0, np.uint64) for _ in bounds) if keep_features else (),
        )
