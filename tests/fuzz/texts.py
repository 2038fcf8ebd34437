"""Targets: normalisation, markup and shingles, on both back ends."""

import random
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache

import numpy as np

from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.text import Shingler, Shingles
from nearsim_db.similarity.text.clean import clean
from nearsim_db.similarity.text.markup import strip_html
from tests.fuzz.contract import Target, Texts

_TOKENS = [
    *"aAzZ09 \t\n\r.!?'\"-_:;,()<>&/=", "é", "É", "e\u0301", "ß", "ẞ", "İ", "ı", "ſ", "ﬁ", "Å", "Σ", "ς",
    "\u0345", "½", "²", "Ⅳ", "١", "９", "\u0316", "\u0f73", "中", "文", "。", "！", "가", "\u1100\u1161", "ー", "ﷺ",
    "😀", "👩🏽", "\U000e0101", "\x00", "\x01", "\x7f", "\x85", "\xa0", "\u200b", "\u200c", "\u200d", "\u2028",
    "\ufeff", "\ud800", "\udfff", "\udc80", "\ufffd", "\U0010ffff", "one ", "two ",
]  # fmt: skip
_PIECES = [
    "<", ">", "</", "/>", "<p>", "</p>", "<b>", "</b>", "<br>", "<script>", "</script>", "<style>", "<!--",
    "-->", "--!>", "<!-->", "<template>", "</template>", "<textarea>", "</textarea>", "<title>", "<a href=",
    '"', "'", "=", " x=", "&", "&amp;", "&#", "&#x", "41;", "&notit;", "&CounterClockwiseContourIntegral;",
    "<!DOCTYPE html>", "<?php", "<![CDATA[", "]]>", "<noscript>", "<xmp>", "<svg>", "word", " ", "\n", "é",
    "9" * 30,
]  # fmt: skip
_PAGES = [
    "<!DOCTYPE html><html><head><title>no</title></head><body><p class='a'>one <b>two</b> &amp; three</body></html>",
    "<script><!-- document.write('<script>no</script>') //--></script>yes<textarea>a <b>&lt;</textarea>",
]
_CHOICES = {
    "normalise.unicode": ["none", "nfc", "nfkc"],
    "normalise.case": ["none", "lower", "casefold"],
    "normalise.whitespace": ["none", "collapse"],
    "normalise.html": ["true", "false"],
    "normalise.invisible": ["drop", "keep"],
    "normalise.mask": ["[]", '["numbers", "dates"]', '["hex", "uuids", "urls", "emails", "paths"]'],
    "shingle.scheme": ["char", "word", "bag", "sentence"],
    "shingle.k": ["1", "2", "3", "7", "40"],
    "shingle.tokens": ["whitespace", "unicode", "ascii"],
    "hash.base": ["poly64", "crc32", "djb2a"],
}


@cache
def _shinglers(settings: tuple[str, ...]) -> tuple[Shingler, Shingler]:
    recipe = override(Recipe(), settings)
    return Shingler(recipe, "numpy"), Shingler(recipe, "numba")


def check_shingles(texts: Sequence[str], rng: random.Random) -> None:
    """Both back ends give the same canonical texts, shingles and numbers; canonical texts are squeezed."""
    settings = tuple(f"{key}={rng.choice(values)}" for key, values in _CHOICES.items())
    plain, compiled = _shinglers(settings)
    cleaned = [clean(text)[0] for text in texts]
    left, right = plain.shingles(cleaned), compiled.shingles(cleaned)
    _assert_equal(left, right)
    if "shingle.scheme=word" in settings or "shingle.scheme=bag" in settings:
        whole = left.canonical.data.tobytes()
        assert b"  " not in whole and b"\0" not in whole


def _assert_equal(left: Shingles, right: Shingles) -> None:
    assert np.array_equal(left.ids, right.ids)
    assert np.array_equal(left.offsets, right.offsets)
    assert np.array_equal(left.canonical.data, right.canonical.data)
    assert np.array_equal(left.canonical.offsets, right.canonical.offsets)
    assert np.array_equal(left.numbers, right.numbers)


def check_markup(texts: Sequence[str], rng: random.Random) -> None:
    """The visible text of a page is not longer than the page, and text without markup stays as it is."""
    for text in texts:
        assert len(strip_html(text)) <= len(text)
        plain = text.replace("<", "").replace("&", "")
        assert strip_html(plain) == plain.removesuffix(" ")


TEXTS = {
    "shingles": Target(
        Texts([*_PAGES, "The cat sat. It rained! 1,234.50", "中文。ねこは窓の。"], [*_TOKENS, *_PIECES[::3]]),
        lambda: nullcontext(check_shingles),
        2_000,
    ),
    "markup": Target(Texts(_PAGES, _PIECES), lambda: nullcontext(check_markup), 1_000),
}
