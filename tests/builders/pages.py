"""Pages of invented sites, each with a long menu and a footer around its story."""

MENU = "".join(f"<li><a href='/{at}'>section {at}</a></li>" for at in range(120))
FOOTER = "<footer>All rights reserved. Sign up for the evening newsletter.</footer>"


def words(name: str, count: int) -> str:
    return " ".join(f"{name}{at}" for at in range(count))


def page(*paragraphs: str, menu: str = MENU) -> str:
    story = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"<html><body><nav><ul>{menu}</ul></nav><article>{story}</article>{FOOTER}</body></html>"


def site(stories: int, name: str = "courier") -> list[dict[str, str]]:
    return [
        {"id": f"{name}-{at}", "site": name, "text": page(words(f"{name}{at}story", 60))}
        for at in range(stories)
    ]
