"""From text to shingle ids."""

from nearsim_db.similarity.text.features import ID_BITS, SCHEME_VERSION, Shingler, Shingles
from nearsim_db.similarity.text.words import library_versions, with_long_english

__all__ = ["ID_BITS", "SCHEME_VERSION", "Shingler", "Shingles", "library_versions", "with_long_english"]
