#!/usr/bin/env python3
"""Check the links between the files of this repository, or between the pages of the built site.

Without a folder: each relative link of README.md and docs/*.md must name a file, and its anchor a heading there. With one:
each relative link of each HTML file below it must name a file there, and its anchor an element. Prints the links that do
not, and exits with 1 if there is one. Links to other sites are not followed.

Usage: check_links.py [FOLDER]
"""

import re
import sys
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MARKDOWN_LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
# Made when the site is built, by Doxygen.
REFERENCE = "api/"


class Page(HTMLParser):
    """The links and the anchors of an HTML page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value and tag != "base":
                self.links.append(value)
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)


class Markdown:
    """The links and the anchors of a Markdown file."""

    def __init__(self, text):
        self.anchors = set()
        prose = CODE.sub(lambda found: found[0].strip("`") if "\n" not in found[0] else "", text)
        for heading in re.findall(r"^#+ (.*)$", prose, re.MULTILINE):
            self.anchors.add(re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-"))
        self.links = MARKDOWN_LINK.findall(CODE.sub("", text))


@lru_cache(maxsize=None)
def read(path):
    text = path.read_text(encoding="utf-8")
    return Page(text) if path.suffix == ".html" else Markdown(text)


def check_page(path):
    """Yield each link of the page that leads nowhere."""
    for link in read(path).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or parts.path.startswith("/"):
            continue
        if path.suffix == ".md" and parts.path.startswith(REFERENCE):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir() and path.suffix == ".html":
            target /= "index.html"
        if not target.exists():
            yield link
        elif parts.fragment and target.suffix in (".html", ".md"):
            if unquote(parts.fragment) not in read(target).anchors:
                yield link


def main():
    if len(sys.argv) > 1:
        pages = sorted(Path(sys.argv[1]).resolve().rglob("*.html"))
    else:
        root = Path(__file__).resolve().parent.parent
        pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    broken = [f"{page}: {link}" for page in pages for link in check_page(page)]
    for one in broken:
        print(one)
    print(f"links: {len(pages)} pages, {len(broken)} broken links")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
