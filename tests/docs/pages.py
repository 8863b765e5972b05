"""The Markdown files of the repository, taken apart: links, anchors, blocks of code, commands."""

from __future__ import annotations

import re
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
_PROGRAM = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:gnomon|make|git|python3?|pip|pytest|docker|docker-compose|kubectl"
    r"|curl|clickhouse-client|kafka-topics\.sh|llama-server|vllm|gor|promtool|amtool) \S"
)
"""How a command begins, in the text and in blocks that name no language."""
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


class Block(NamedTuple):
    """Code of a page: its language ("" if none is named), the line it begins at, and the text."""

    page: Path
    language: str
    line: int
    text: str


class Typed(NamedTuple):
    """One command of shell as a page prints it, without prompt and comment; `line` 0: in the page's text."""

    page: Path
    line: int
    text: str


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


def typed(page: Path) -> list[Typed]:
    """What the page's blocks tell one to type, in their order, then what its text does.

    Each line of a block of shell is a command. A block of no language is one of shell if its first line
    begins with `$ ` or names a program; after `$ ` come answers, so only lines with it are commands.
    """
    found: list[Typed] = []
    for block in blocks(page):
        text = re.sub(r"\\\n\s*", lambda cut: " " + "\0" * cut[0].count("\n"), block.text)
        lines = [
            (block.line + text[: start.start()].count("\n") + text[: start.start()].count("\0"), start[0])
            for start in re.finditer(r"^.*\S.*$", text, re.MULTILINE)
        ]
        if block.language == "" and lines and lines[0][1].startswith("$ "):
            lines = [(number, line[2:]) for number, line in lines if line.startswith("$ ")]
        elif not is_shell(block):
            continue
        found += [
            Typed(page, number, told)
            for number, line in lines
            if (told := uncommented(line.replace("\0", "")))
        ]
    return found + [Typed(page, 0, span) for span in spans(page) if _PROGRAM.match(span)]


def is_shell(block: Block) -> bool:
    """Whether each of its lines is a command."""
    return block.language == "sh" or (block.language == "" and _PROGRAM.match(block.text) is not None)


def uncommented(line: str) -> str:
    """The line without what follows ` # ` outside of quotes, spaces made one."""
    for mark in re.finditer(r"(?:^|\s)#", line):
        before = line[: mark.start()]
        if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
            line = before
            break
    return re.sub(r"\s+", " ", line).strip()
