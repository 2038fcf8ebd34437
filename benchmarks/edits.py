"""Simulate the typical edits of republished stories by random edits of tokens and of the rendered text."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.language import Ints, Language, Tokens

OUTLETS = 42
OUTLET_KINDS = ("Post", "Herald", "Times", "Wire", "Gazette", "Journal")


@dataclass(frozen=True, slots=True)
class Story:
    """A story before rendering."""

    headline: Tokens
    body: Tokens
    head: str = ""  # boilerplate before the body
    tail: str = ""  # boilerplate after the body


class Editor:
    """Makes republications; the outlets and their boilerplate are drawn once from `rng`."""

    def __init__(self, language: Language, rng: np.random.Generator) -> None:
        self._language = language
        names = language.render_plain(language.draw_words(rng, OUTLETS)).title().split()
        self._outlets = [f"The {name} {OUTLET_KINDS[i % len(OUTLET_KINDS)]}" for i, name in enumerate(names)]
        tails = language.sample(rng, rng.integers(12, 45, OUTLETS), language.draw_topics(rng, OUTLETS))
        self._tails = [language.render(tail) for tail in tails]

    def render(self, story: Story) -> tuple[str, str]:
        """Return title and text of a story."""
        title = self._language.render_plain(story.headline).capitalize()
        text = story.head + self._language.render(story.body)
        return title, f"{text}\n{story.tail}" if story.tail else text

    def republish(self, story: Story, rng: np.random.Generator) -> tuple[str, str, str]:
        """Return title and text of one republication, and the names of its edits joined by '+'."""
        chance, names = rng.random(), []

        # Choose a kind of republication by its share.
        if chance < 0.20:
            names.append("typography")
        elif chance < 0.45:
            names.append("boilerplate")
            names += ["numbers"] if rng.random() < 0.5 else []
        elif chance < 0.65:
            names.append("truncate")
            names += ["boilerplate"] if rng.random() < 0.6 else []
        elif chance < 0.80:
            names += ["reorder", "substitute-lightly"]
        else:
            names += ["substitute", "numbers"]
            names += ["truncate"] if rng.random() < 0.5 else []
            names += ["boilerplate"] if rng.random() < 0.5 else []
        # Typography may be changed in addition to the other edits.
        if names != ["typography"] and rng.random() < 0.15:
            names.append("typography")

        for name in names:
            story = self._edit(name, story, rng)
        title, text = self.render(story)
        if "typography" in names:
            title, text = change_typography(title, text, rng)
        return title, text, "+".join(names)

    def _edit(self, name: str, story: Story, rng: np.random.Generator) -> Story:
        """Apply the named edit to the story's tokens; typography is applied when rendering."""
        match name:
            case "boilerplate":
                return self._add_boilerplate(story, rng)
            case "truncate":
                keep = max(8, int(len(story.body) * rng.uniform(0.60, 0.95)))
                return replace(story, body=story.body[:keep])
            case "reorder":
                return replace(story, body=self._reorder(story.body, rng))
            case "substitute-lightly":
                return replace(story, body=self._substitute(story.body, rng.uniform(0.005, 0.04), rng))
            case "substitute":
                return replace(story, body=self._substitute(story.body, rng.uniform(0.04, 0.15), rng))
            case "numbers":
                return replace(story, body=self._change_numbers(story.body, rng))

            case _:  # typography
                return story

    def _add_boilerplate(self, story: Story, rng: np.random.Generator) -> Story:
        """Add an outlet's byline before the body, its notice after it, and sometimes its own headline."""
        outlet = int(rng.integers(OUTLETS))
        if rng.random() < 0.8:
            author = self._language.render_plain(self._language.draw_words(rng, 2)).title()
            story = replace(story, head=f"By {author}, {self._outlets[outlet]} - ")
        if rng.random() < 0.7:
            story = replace(story, tail=self._tails[outlet])
        if rng.random() < 0.3:
            story = replace(story, headline=self._language.draw_words(rng, len(story.headline)))
        return story

    def _reorder(self, body: Tokens, rng: np.random.Generator) -> Tokens:
        """Shuffle all paragraphs but the first."""
        ends = np.flatnonzero(self._language.is_paragraph_end(body))
        paragraphs = np.split(body, ends[:-1] + 1)
        order = 1 + rng.permutation(len(paragraphs) - 1)
        return np.concatenate([paragraphs[0], *(paragraphs[i] for i in order.tolist())])

    def _substitute(self, body: Tokens, rate: float, rng: np.random.Generator) -> Tokens:
        """Replace a share `rate` of the words, keeping punctuation."""
        chosen = np.flatnonzero(rng.random(len(body)) < rate)
        return self._put(body, chosen, self._language.draw_words(rng, len(chosen)))

    def _change_numbers(self, body: Tokens, rng: np.random.Generator) -> Tokens:
        """Replace four of ten numbers."""
        chosen = np.flatnonzero(self._language.is_number(body) & (rng.random(len(body)) < 0.4))
        return self._put(body, chosen, self._language.draw_numbers(rng, len(chosen)))

    def _put(self, body: Tokens, places: Ints, words: Tokens) -> Tokens:
        """Return a copy of `body` with `words` at `places`. Each word gets the variant of the word that it replaces."""
        size = self._language.vocabulary_size
        body = body.copy()
        # A token is its variant times the size of the vocabulary, plus its word. Keep the variant.
        body[places] = body[places] // size * size + words
        return body


def change_typography(title: str, text: str, rng: np.random.Generator) -> tuple[str, str]:
    """Change the case of letters, the punctuation, or the line ends and spaces of a text."""
    match int(rng.integers(4)):
        case 0:
            return title.upper(), text.upper()
        case 1:
            return title.title(), text.lower()
        case 2:
            return f"\u201c{title}\u201d", text.replace(" - ", " \u2014 ").replace(".\n", "\u2026\n")
        case _:
            return title, text.replace("\n", "\n\n    ").replace(". ", ".  ")
