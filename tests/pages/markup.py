"""Reads a page as a browser does, and finds what a page of ours never has."""

from html.parser import HTMLParser

WORDS = """
html head meta title link script body a header footer main nav p form label input button select
option h1 h2 h3 dl dt dd div span b code pre ol ul li table thead tbody tr th td time details
summary figure figcaption svg g rect path line text br wbr textarea progress"""
ELEMENTS = frozenset(WORDS.split())
NEVER = ("style",)


class Markup(HTMLParser):
    """The elements, links and words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.words: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self._may_break = False
        self.feed(text)
        self.close()
        self.faults += [f"the id {one} twice" for one in self.ids if self.ids.count(one) > 1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._may_break = tag == "wbr"
        if tag not in ELEMENTS:
            self.faults.append(f"an element {tag}")
        self.faults += [f"{tag} {k}" for k in values if k in NEVER or k.startswith("on")]
        if tag == "script" and not (values.get("src") or "").startswith("/static/"):
            self.faults.append("a script in the page")
        if tag == "a":
            self.links.append(values.get("href") or "")
        if values.get("id"):
            self.ids.append(values["id"])

    def handle_data(self, data: str) -> None:
        if self._may_break and self.words:
            data = self.words.pop() + data
        self.words.append(data)
        self._may_break = False

    @property
    def text(self) -> str:
        """What a person reads."""
        return " ".join(" ".join(self.words).split())
