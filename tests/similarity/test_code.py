"""Source code as words: what is left out, what is one word, and where the words are in the text."""

import sys

import pytest

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.passages import PassageFinder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.text.code import Lexer
from tests.builders.cpu_time import cpu_seconds

PRESET = presets.load("code-copies")
JAVA = """/* 주석 { */
class Summe {
    // of all
    static int 합계(int[] xs) { int total = 0; for (int x : xs) total += x;
        System.out.println("합계 is " + total); return total; }
}
"""
RENAMED = """import java.util.*;  class Tool
{ int sum(int[] values) {
int s = 0; for (int v : values) { s += v; }
System.out.println("합계 is " + s); return s; } }"""
SHARED = ("int 합계(", "return total;"), ("int sum(", "return s;")


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        (
            "java",
            'int a = f(7); // {x}\n/* y */ b.c("d  e");',
            'int name = name ( 7 ); name . name ( "d e" );',
        ),
        (
            "python",
            'def f(x):\n    """Doc."""\n    return len(x)  # y\n',
            "def name ( name ) : return len ( name )",
        ),
        ("c++", "#include <a.h>\nint main() { }", "#include <a.h> int name ()"),
        ("html", "<p class=x>Two words</p><!-- no -->", "< p name = x > Two words < / p >"),
        ("text", "plain  text\n", "plain text"),
        ("java", " /* nothing */ {}", ""),
        ("java", "", ""),
    ],
)
def test_code_is_read_as_words(language: str, text: str, words: str) -> None:
    written = Lexer(language).written(text)
    assert written.replace(" ", "") == words.replace(" ", "")
    assert written == " ".join(written.split())


@pytest.mark.parametrize("end_of_line", ["\n", "\r\n", "\r"])
def test_places_of_words_are_those_of_the_text(end_of_line: str) -> None:
    text = JAVA.replace("\n", end_of_line)
    words, begins, ends = Lexer("java").located(text)
    assert words == Lexer("java").written(JAVA)
    for word in set(words.split()) - {"name"}:
        at = words.index(word)
        assert text[begins[at] : ends[at]] == word
    names = [text[begins[at] : ends[at]] for at in range(len(words)) if words[at:].startswith("name")]
    assert names[:4] == ["Summe", "합계", "xs", "total"]


@pytest.mark.parametrize("blank", ["", " \t", "\f", "\v", "\u00a0", "\x1c\u2028"])
def test_blank_lines_of_any_white_space_take_linear_time(blank: str) -> None:
    text = JAVA + f"{blank}\n" * 20_000 + JAVA
    assert cpu_seconds(lambda: Lexer("java").written(text)) < 2
    words, begins, ends = Lexer("java").located(text)
    last = words.rindex("return")
    assert text[begins[last] : ends[last + 5]] == "return" and begins[last] == text.rindex("return")


@pytest.mark.parametrize("end_of_line", ["\n", "\r\n"])
def test_a_renamed_copy_is_found_with_its_passage(end_of_line: str) -> None:
    text = JAVA.replace("\n", end_of_line)
    [found] = PassageFinder(PRESET, "numpy").find(text, RENAMED)
    for side, (first, last) in zip((found.left, found.right), SHARED, strict=True):
        assert side.text.startswith(first) and side.text.endswith(last)
    assert (found.left.text, found.share) == (text[found.left.start : found.left.end], 1.0)
    encoder = Encoder(resolve(PRESET), "numpy")
    own, other, none = (set(encoder.features([one]).of(0).tolist()) for one in (text, RENAMED, "// only"))
    assert len(own & other) / min(len(own), len(other)) > 0.9 and not none


def test_languages_and_the_package_are_named_if_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecipeError, match="Pygments has no lexer for 'klingon'"):
        resolve(override(PRESET, ["shingle.language=klingon"]))
    monkeypatch.setitem(sys.modules, "pygments.lexers", None)
    with pytest.raises(RecipeError, match=r"pip install 'nearsim-db\[code\]'"):
        resolve(PRESET)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["shingle.tokens=code"], "shingle.tokens is code and shingle.language None; with tokens = code set"),
        (["shingle.language=java"], "shingle.tokens is unicode and shingle.language java"),
        (["shingle.tokens=code", "shingle.language=java", "normalise.html=true"], "are for prose"),
        (["shingle.tokens=code", "shingle.language=java", "shingle.stopwords=en"], "are for prose"),
    ],
)
def test_code_has_a_language_and_no_stop_words(settings: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        override(Recipe(), settings)


@pytest.mark.slow("spends budgets of time")
@pytest.mark.parametrize(
    ("language", "part"),
    [("java", "int a "), ("java", "a "), ("java", "a<"), ("perl", "m("), ("perl", "<<a\n"), ("html", "<!--")],
)
def test_a_text_that_a_lexer_reads_in_quadratic_time_is_refused_within_its_budget(
    language: str, part: str
) -> None:
    text = part * (120_000 // len(part))
    lexer, reasons = Lexer(language), list[str | None]()
    assert cpu_seconds(lambda: reasons.append(lexer.refusal(text))) < 2 * (1 + 3e-5 * len(text))
    (reason,) = reasons
    assert reason is not None and f"as source code in {language}" in reason


@pytest.mark.slow("spends budgets of time")
def test_a_refused_text_has_no_words() -> None:
    lexer, text = Lexer("java"), "a " * 10_000
    assert lexer.refusal(text) is not None
    assert (lexer.written(text), lexer.located(text)[0]) == ("", "")


@pytest.mark.parametrize("part", ["\n", "\\", "(", '"', JAVA])
def test_a_text_that_is_read_in_linear_time_is_not_refused(part: str) -> None:
    lexer, text = Lexer("java"), part * (40_000 // len(part))
    expected = lexer.written(text)
    assert lexer.refusal(text) is None
    assert lexer.written(text) == expected
