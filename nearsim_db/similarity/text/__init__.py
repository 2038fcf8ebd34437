"""Text processing: from the text of a document to the ids of its shingles."""

from nearsim_db.similarity.text.features import ID_BITS, SCHEME_VERSION, Shingler, Shingles
from nearsim_db.similarity.text.words import library_versions, with_long_english

__all__ = ["ID_BITS", "SCHEME_VERSION", "Shingler", "Shingles", "library_versions", "with_long_english"]
