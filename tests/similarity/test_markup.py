"""The visible text of HTML: known answers, agreement with a parser that builds the tree, and linear time."""

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from nearsim_db.similarity.text import markup
from nearsim_db.similarity.text.markup import strip_html
from tests.builders.cpu_time import cpu_seconds
from tests.builders.plain_text import any_text
from tests.builders.selection import examples, some


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("", ""),
        ("a < b & c", "a < b & c"),
        ("1 <2 and 3> 2", "1 <2 and 3> 2"),
        ("i <3 you, AT&T and R&D", "i <3 you, AT&T and R&D"),
        ("if x <y then z", "if x <y then z"),
        ("<p>cut off <a hre", "cut off <a hre"),
        ("&amp;&lt;&eacute;&#x41;&#66;&nbsp;&hellip;", "&<éAB\xa0…"),
        ("<p>one</p><p>two</p>", "one two"),
        ("one<br>two<hr/>three", "one two three"),
        ("<ul><li>one<li>two</ul>", "one two"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b c"),
        ("<b>bo</b>ld, H<sub>2</sub>O, <span>T</span>he <i><b>e</b>nd</i>", "bold, H2O, The end"),
        ("<title>no</title><body>yes", "yes"),
        ("<html><head><meta charset=x></head><body><h1>yes</h1></body></html>", "yes"),
        ("a<script>if (x < y && y > z) no()</script>b", "ab"),
        ("<script>no", ""),
        ("<style>p > a {no: no}</style>yes", "yes"),
        ("yes<!-- no --><!-- <p>no</p> --> too", "yes too"),
        ("<body>yes<noscript>no</noscript><template>no</template>", "yes"),
        ('<img alt="no" src=x><input value="no">yes', "yes"),
        ("<!DOCTYPE html><?xml no?><p>yes", "yes"),
        ("<frameset><frame></frameset>", ""),
        ("5<wbr>0, a</foo>b, one</p>two", "50, a b, one two"),
        ("a<!-- x -->b<!---->c<!-->d<!--x--!>e<!--!>x-->f", "a b c d e f"),
        ("a<?php no ?>b</3>c<!no>d</>e", "a b c d e"),
        ("yes <!-- yes", "yes <!-- yes"),
        ("yes<!-- no > no", "yes"),
        ("<a title='>no' alt=\">no\" x=y/>yes</a>", "yes"),
        ('<a title="no>yes', "yes"),
        ("<a =>yes<a b= >yes<a b=no'no\"no>yes", "yesyesyes"),
        ("<SCRIPT>no</scripts></Script >yes", "yes"),
        ("<script><!-- document.write('<script>no</script>') //--></script>yes", "yes"),
        ("<script><!-- </script>yes", "yes"),
        ("<script><!-- <script> --></script>yes", "yes"),
        ("<script><!--> <script></script>yes", "yes"),
        ("<textarea>a <b>&amp; c</textarea>d<xmp>a <b>&amp;</xmp>", "a <b>& c d a <b>&amp;"),
        ("<iframe>no</iframe>yes<noembed>no</noembed><noframes>no</noframes>", "yes"),
        ("<template>no<template>no</template>no</template>yes</template>!", "yes!"),
        ("<template><script></template></script>no</template>yes", "yes"),
        ("&notit; &not; &ampx &frac12 &Aacute2; &CounterClockwiseContourIntegral;", "¬it; ¬ &x ½ Á2; ∳"),
        ("&nosuch; &; &# &#x; &x2; & &#65a &#00065;", "&nosuch; &; &# &#x; &x2; & Aa A"),
        ("&#128; &#159; &#129;", "€ Ÿ \x81"),
        ("&#0; &#xD800; &#x110000; &#99999999999999999999;", "� � � �"),
        ("<p>안녕 <b>中</b>文</p>😀", "안녕 中文 😀"),
    ],
)
def test_visible_text_of_html(page: str, seen: str) -> None:
    assert strip_html(page).split() == seen.split()


@examples(200)
@given(text=any_text)
def test_a_less_than_sign_without_a_tag_is_text(text: str) -> None:
    assert strip_html(f"{text.replace('&', '')} < 1").split()[-2:] == ["<", "1"]


words = st.sampled_from(["one", "two", "A &amp; B", "&eacute;t&eacute;", "3 < 4", "x=1"])
attributes = st.sampled_from(
    ["", " class=no", ' title="no > no"', " id='no'", " hidden", " data-x = no", "/"]
)


def _element(content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(["div", "section", "b", "span", "em", "a", "li", "blockquote", "script", "style"])
    return st.builds(
        lambda name, given, inner: f"<{name}{given}>{inner}</{name}>", names, attributes, content
    )


pages = st.recursive(
    st.one_of(words, st.sampled_from(["<br>", "<img alt=no>", "<!-- no -->", "<hr/>"])),
    lambda inner: st.one_of(_element(inner), st.lists(inner, max_size=4).map(" ".join)),
    max_leaves=20,
)


@examples(300)
@given(page=pages)
def test_visible_text_agrees_with_a_tree_parser(page: str) -> None:
    tree = LexborHTMLParser(page)
    tree.strip_tags(["script", "style"])
    for element in reversed(tree.css("b,span,em,a")):
        element.unwrap()
    assert tree.body is not None
    tree.body.merge_text_nodes()
    assert strip_html(page).split() == tree.body.text(separator=" ").split()


MEGABYTE = 1_000_000
REPEATED = {
    "formatting": "<b>",
    "blocks": "<div>",
    "list items": "<ul><li>",
    "words in formatting": "<span>x",
    "misnested": "<b><p></b>",
    "tables": "<table><tr><td>",
    "hidden": "<div><script>x</script>",
    "templates": "<template>",
    "empty templates": "<template></template>",
    "end tags": "</b>",
    "comments": "<!--x-->",
    "comment starts": "<!--",
    "comments in scripts": "<script><!--<script>",
    "references": "&gt",
    "unknown references": "&notit",
    "ampersands": "&",
    "less-than signs": "<",
    "quoted": "<a b=\"'",
    "unclosed": '<a href="',
}
PAGES: dict[str, Callable[[], str]] = {
    **{
        name: lambda piece=piece: piece * (MEGABYTE // len(piece)) + ">"  # type: ignore[misc]
        for name, piece in REPEATED.items()
    },
    "attributes": lambda: "<a " + " ".join(f"a{number}=1" for number in range(MEGABYTE // 9)) + ">x",
    "equals signs": lambda: "<a" + " =" * (MEGABYTE // 2) + ">",
    "closed at the end": lambda: "<div>" * (MEGABYTE // 11) + "</div>" * (MEGABYTE // 11),
    "formatting across blocks": lambda: "<b>" * 20 + "<div>" * (MEGABYTE // 9) + "</b>" * (MEGABYTE // 9),
    "text moved out of a table": lambda: "<table>" + "x<b>" * (MEGABYTE // 4),
    "a number": lambda: "&#" + "9" * MEGABYTE + ";>",
    "a name": lambda: "&" + "a" * MEGABYTE + ";>",
}


@pytest.mark.parametrize("name", some(list(PAGES), "every page", kept=6))
def test_a_megabyte_of_hostile_markup_takes_less_than_a_second(name: str) -> None:
    page = PAGES[name]()
    assert cpu_seconds(lambda: strip_html(page)) < 1


def test_text_in_deep_markup_is_kept() -> None:
    assert strip_html("<b>" * 30_000 + "one" + "</b>" * 30_000 + " two").split() == ["one", "two"]
    assert strip_html("<div>" * 100_000 + "one" + "</div>" * 100_000 + "two").split() == ["one", "two"]


@pytest.mark.slow("measures memory")
@pytest.mark.parametrize("part", ["aa<b>", "&#x4e00;", "<p>&amp;", "&aacute;b "])
def test_the_parts_of_a_page_are_not_all_in_memory_at_once(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markup, "_MAX_PARTS", 1_000)
    monkeypatch.setattr(markup, "_CHARACTERS_AT_ONCE", 10_000)
    page = part * (400_000 // len(part))
    tracemalloc.start()
    seen = strip_html(page)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
    assert seen[:900] == strip_html(part * 900)[:900]
    assert seen[-900:] == strip_html(part * 900)[-900:]
    assert len(seen) / len(strip_html(part * 900)) == pytest.approx(len(page) / len(part) / 900, rel=0.01)
