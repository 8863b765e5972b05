"""The Markdown files of the repository, taken apart: links, anchors, blocks of code, commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md", "dashboards/**/*.md", "bench/**/*.md")
    for path in ROOT.glob(pattern)
)

_FENCE = re.compile(r"^( *)```(\w*)\s*$")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(<?([^()\s<>]+(?:\([^()\s]*\))?)>?(?:\s+\"[^\"]*\")?\)")
_AUTOMATIC = re.compile(r"<(https?://[^<>\s]+)>")
_SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


class Block(NamedTuple):
    """Code of a page: its language ("" if none is named), the line it begins at, and the text."""

    page: Path
    language: str
    line: int
    text: str


class Command(NamedTuple):
    """The words of one `gnomon ...` of a page. A `whole` one can be run as it stands."""

    page: Path
    line: int
    words: tuple[str, ...]
    whole: bool


def name(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Fenced and indented blocks. Raises ValueError where a fence is not closed."""
    found: list[Block] = []
    fenced: list[str] | None = None
    language, start, margin = "", 0, 0
    indented: list[str] = []
    before = ""
    for number, line in enumerate([*page.read_text(encoding="utf-8").splitlines(), ""], 1):
        fence = _FENCE.match(line)
        if fenced is not None:
            if fence:
                found.append(Block(page, language, start, "\n".join(fenced)))
                fenced = None
            else:
                fenced.append(line[margin:] if not line[:margin].strip() else line)
            continue
        if line.startswith("    ") and not fence and (indented or not before.strip()):
            indented.append(line[4:])
        elif indented:
            found.append(Block(page, "", number - len(indented), "\n".join(indented)))
            indented = []
        if fence:
            fenced, language, start, margin = [], fence[2], number + 1, len(fence[1])
        before = line
    if fenced is not None:
        raise ValueError(f"{name(page)}: the fence before line {start} is not closed")
    return found


def prose(page: Path) -> str:
    """A page's text without its fenced blocks."""
    kept, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def links(page: Path) -> list[str]:
    """Targets of links and pictures as they are written."""
    text = _SPAN.sub("", prose(page))
    return _LINK.findall(text) + _AUTOMATIC.findall(text)


def spans(page: Path) -> list[str]:
    """Pieces of code within the text, on one line each."""
    return [" ".join(span.split()) for _, span in _SPAN.findall(prose(page))]


def anchors(page: Path) -> set[str]:
    """What `#...` may name on a page, as GitHub makes it of the headings."""
    seen: dict[str, int] = {}
    found = set()
    for heading in _HEADING.findall(prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def commands(page: Path) -> Iterator[Command]:
    """Each `gnomon ...` of a page's blocks and of its text."""
    for block in blocks(page):
        if block.language not in ("", "sh"):
            continue
        text = re.sub(r"\\\n\s*", " ", block.text)
        for number, line in enumerate(text.splitlines(), block.line):
            found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(gnomon .*)", line.strip())
            # `[--option X]` is how a synopsis writes what may be left out; `...` is said, not typed.
            if found and " [-" not in found[1]:
                yield Command(page, number, _words(found[1]), whole=True)
    for span in spans(page):
        if re.match(r"gnomon [a-z]", span) and " [-" not in span:
            yield Command(page, 0, _words(span), whole=False)


def _words(line: str) -> tuple[str, ...]:
    words = shlex.split(line, comments=True)
    for end in (">", "|", "&&", ">>", "2>"):
        if end in words:
            words = words[: words.index(end)]
    return tuple(words)
