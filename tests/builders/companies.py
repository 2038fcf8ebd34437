"""Rows of companies. Some companies have several rows, which differ in their spelling."""

import random
from collections import defaultdict
from dataclasses import dataclass

_SYLLABLES = (
    "al",
    "ver",
    "tec",
    "nor",
    "max",
    "sol",
    "pri",
    "gen",
    "ora",
    "lum",
    "cor",
    "vis",
    "dyn",
    "ter",
    "qua",
    "bri",
    "sta",
    "kel",
    "mon",
    "fal",
    "har",
    "win",
    "red",
    "del",
)
_TRADES = (
    "Medical",
    "Logistics",
    "Holdings",
    "Capital",
    "Partners",
    "Technologies",
    "Services",
    "Energy",
    "Foods",
    "Properties",
    "Trading",
)
_FORMS = ("LLC", "Inc", "Corp", "Limited")
_STREETS = (
    "Main",
    "Oak",
    "Park",
    "Washington",
    "Market",
    "Lincoln",
    "Lake",
    "Church",
    "Union",
    "River",
)
_CITIES = (("Wilmington, DE", "198"), ("New York, NY", "100"), ("Chicago, IL", "606"), ("Houston, TX", "770"))


@dataclass(frozen=True)
class Companies:
    """Rows of companies."""

    texts: dict[str, str]  # by id of the row
    company_of: dict[str, int]  # by id of the row

    def labels(self, count: int, seed: int = 1) -> list[tuple[str, str, bool]]:
        """Draw `count` pairs of rows of the same company and `count` pairs of rows of different companies."""
        generator = random.Random(seed)
        rows = defaultdict(list)
        for row, company in self.company_of.items():
            rows[company].append(row)
        several = [same for same in rows.values() if len(same) > 1]
        labels: list[tuple[str, str, bool]] = []
        for same in generator.sample(several, count):
            left, right = generator.sample(same, 2)
            labels.append((left, right, True))
        while len(labels) < 2 * count:
            left, right = generator.sample(list(self.texts), 2)
            if self.company_of[left] != self.company_of[right]:
                labels.append((left, right, False))
        return labels


def make_companies(count: int, seed: int = 53) -> Companies:
    """Return `count` rows with name, street, city and country. Many companies share street, city and country."""
    generator = random.Random(seed)
    rows: list[tuple[int, str]] = []
    company = 0

    while len(rows) < count:
        word = "".join(generator.sample(_SYLLABLES, 3)).title()
        name = f"{word} {generator.choice(_TRADES)}"
        form, street = generator.choice(_FORMS), generator.choice(_STREETS)
        number, suite = generator.randrange(1, 2_000), 100 * generator.randrange(6)
        city, zip_code = generator.choice(_CITIES)
        place = f"{city} {zip_code}{generator.randrange(20):02}, United States"
        rows.append((company, f"{name} {form}, {number} {street} Street Suite {suite}, {place}"))

        # Up to two more rows of the same company. In half of them a letter of the name is missing.
        for _ in range(generator.choices((0, 1, 2), (70, 22, 8))[0]):
            place_of_error = generator.randrange(1, len(name) - 1)
            spelt = name[:place_of_error] + name[place_of_error + 1 :] if generator.random() < 0.5 else name
            kind = generator.choice(("Street", "St", "St."))
            rows.append((company, f"{spelt} {generator.choice(_FORMS)}, {number} {street} {kind}, {place}"))
        company += 1

    chosen = rows[:count]
    # The rows of a company are adjacent until here.
    generator.shuffle(chosen)
    named = {f"row-{at}": row for at, row in enumerate(chosen)}
    return Companies(
        {name: text for name, (_, text) in named.items()},
        {name: number for name, (number, _) in named.items()},
    )
