"""Family `garbage`, the tokenizer's part: reserved tokens, and marks that a detokenizer takes away."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter

from compare.detectors.facts import TALKS_OF_TOKENS, Part
from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

RESERVED = re.compile(
    r"<unk>|</?s>|<pad>|</?mask>|<bos>|<eos>|<eod>|<sep>|<cls>|<unused_?\d+>|<0x[0-9A-Fa-f]{2}>"
    r"|<\|[A-Za-z_0-9\u2581.\-]{1,40}\|>|<\uff5c[^<>\uff5c]{1,60}\uff5c>|<\|[a-z_]{2,40}>"
    r"|</?(?:start|end)_of_(?:turn|image|audio|text)>|<(?:eot_id|im_start|im_end|endoftext|extra_id_\d+)>"
    r"|<(?:reserved|special|extra|dummy|placeholder)_?(?:special_)?(?:token)?_?\d+>"
    r"|\[(?:PAD|UNK|CLS|SEP|MASK|BOS|EOS|gMASK|sMASK)\d*\]|\[/?INST\]|<</?SYS>>|\[/?AVAILABLE_TOOLS\]"
    r"|\[control_\d+\]"
)
"""Tokens that a tokenizer keeps for itself and no answer should show."""
_SAYS_TOKEN = re.compile(r"\btokens?\b", re.IGNORECASE)
_NAMES_MODEL = re.compile(
    r"\b(?:bert|roberta|mistral|mixtral|llama|qwen|gemma|deepseek|chatglm|phi-?\d|gpt-?\d|hermes|harmony|t5|cloze)\b",
    re.IGNORECASE,
)
_HTML = {"s": re.compile(r"<s[ >]"), "mask": re.compile(r"<mask[ >]")}
_PIECE_MARK = re.compile(
    r"(?<=[^\W\d_])\u2581|\u2581(?=[^\W\d_])"  # sentencepiece
    r"|(?<=[a-z0-9,;:!?.\)])\u0120(?=[^\W_])|\u0120[a-z]+\u0120|(?:^|\s)\u0120\w+(?:\s+\u0120\w+){2}|\u0120{2}"
    r"|\u010a{2}|\u010a\u0120|(?<=[a-z.!?:,;])\u010a"  # byte-level BPE
    r"|[\u00e2\u00e3\u00e4\u00e5\u00e6\u00e7\u00e8\u00e9\u00ec\u00ed\u00ee\u00ef\u00f0]"
    r"[\u0120-\u0143\u00a1-\u00ac\u00ae-\u00bf][\u0120-\u0143]"
)
_MAY_MARK = re.compile("[\u010a\u0120-\u0143\u2581]")
_SPARK = re.compile("[\u2582-\u2588]")
_WORD_PIECE = re.compile(r"(?<=\w) ##[a-z]+")
_WORD_PIECES_MIN = 3
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_PRIVATE = re.compile(r"[\ue000-\uf8fe\U000f0000-\U000ffffd]{2,}")
_CODE = re.compile(r"```.*?(?:```|\Z)|(?<!`)(`{1,2})(?!`)[^\n]*?(?<!`)\1(?!`)", re.DOTALL)
_MARK_ALONE = re.compile("(?<![^\\W\\d_])[\u010a\u0120\u2581](?![^\\W\\d_])")
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201e": "\u201c", "`": "`", "\u00ab": "\u00bb"}


def detect_leaks(subject: Subject, part: Part, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `reserved_tokens`, `detokenizer_leak` and `control_characters` of one part."""
    yield from _reserved(subject, part)
    text = part.text
    if not text.isascii():
        yield from _marks(subject, part)
    if not text.isprintable() and (match := _CONTROL.search(text)):
        yield from _mark(subject, part, match, "control_characters", "a control character is in the text")
    pieces = list(_WORD_PIECE.finditer(text)) if " ##" in text else []
    if len(pieces) >= _WORD_PIECES_MIN and not _talks_of_tokens(subject, text):
        yield from _mark(subject, part, pieces[0], "detokenizer_leak", "word pieces are in the text")


def _marks(subject: Subject, part: Part) -> Iterable[Finding]:
    text = part.text
    if _MAY_MARK.search(text) and (hits := _leaked_marks(subject, text)):
        yield from _mark(subject, part, hits[0], "detokenizer_leak", "a detokenizer's mark is in the text")
    if match := _PRIVATE.search(text):
        yield from _mark(subject, part, match, "private_characters", "private characters are in the text")


def _leaked_marks(subject: Subject, text: str) -> list[re.Match[str]]:
    """Marks that nobody quotes, draws with or explains."""
    spans = _code_spans(text)
    hits = [
        match
        for match in _PIECE_MARK.finditer(text)
        # Block elements beside it make it a sparkline.
        if not _SPARK.search(text[max(0, match.start() - 3) : match.end() + 3])
        and not _is_within(spans, match.start())
        and not _is_quoted(text, match)
        and not _is_word_quoted(text, match)
    ]
    if not hits or _MARK_ALONE.search(subject.prompt):
        return []
    if _talks_of_tokens(subject, text):
        # A leak takes the place of the spaces; an explanation is written with them.
        return hits if len(hits) > text.count(" ") / 2 else []
    return hits


def reserved_in(subject: Subject, part: Part) -> list[re.Match[str]]:
    """Reserved tokens that are neither quoted nor talked about."""
    text = part.text
    if "<" not in text and "[" not in text:
        return []
    hits = [match for match in RESERVED.finditer(text) if match.group() not in subject.prompt]
    if not hits:
        return []
    html = {token for token in {match.group() for match in hits} if _is_html(text, token)}
    hits = [match for match in hits if match.group() not in html]
    if part.place in ("text", "reasoning"):
        spans = _code_spans(text)
        said = subject.observation.text if part.place == "reasoning" else ""
        hits = [
            match
            for match in hits
            if not _is_within(spans, match.start())
            and not _is_quoted(text, match)
            and f"`{match.group()}`" not in said
        ]
        is_each_once = bool(hits) and len({match.group() for match in hits}) == len(hits)
        if is_each_once and (subject.request.talks_of_tokens or _explains(subject, text, hits)):
            return []
    return hits


def _talks_of_tokens(subject: Subject, text: str) -> bool:
    return subject.request.talks_of_tokens or TALKS_OF_TOKENS.search(text) is not None


def _explains(subject: Subject, text: str, hits: list[re.Match[str]]) -> bool:
    """Whether tokens or templates are the matter, and something is said before, between and behind these.

    An end mark that leaked is the end of the answer, or the start of another turn follows it.
    """
    gaps = [text[left.end() : right.start()] for left, right in pairwise(hits) if right.group()[:3] != "<0x"]
    if not all(map(str.strip, (text[: hits[0].start()], *gaps, text[hits[-1].end() :]))):
        return False
    return _SAYS_TOKEN.search(text) is not None or _NAMES_MODEL.search(subject.prompt) is not None


def _reserved(subject: Subject, part: Part) -> Iterable[Finding]:
    hits = reserved_in(subject, part)
    if hits:
        yield subject.finding(
            Family.GARBAGE,
            "reserved_tokens",
            f"{len(hits)} reserved tokens such as {hits[0].group()} are in the text",
            place=part.place,
            span=(hits[0].start(), hits[-1].end()),
            measured=float(len(hits)),
            threshold=1.0,
        )


def _mark(subject: Subject, part: Part, match: re.Match[str], code: str, message: str) -> Iterable[Finding]:
    mark = match.group().strip()
    if mark in subject.prompt or (subject.other is not None and mark in subject.other.text):
        return
    yield subject.finding(Family.GARBAGE, code, f"{message}: {mark!r}", place=part.place, span=match.span())


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    """Whether a token stands in a code span or in quotation marks: then it is being talked about."""
    start, end = match.span()
    before = text[max(0, start - 200) : start]
    if before.rpartition("\n")[2].count("`") % 2 == 1:
        return True
    return text[start - 1 : start] in _QUOTES and text[end : end + 1] == _QUOTES.get(text[start - 1 : start])


def _is_word_quoted(text: str, match: re.Match[str]) -> bool:
    """Whether the word around a mark stands in quotation marks."""
    before = text[max(0, match.start() - 40) : match.start()]
    word = text[match.start() : match.end() + 40]
    quoted = before.rpartition(" ")[2].lstrip("([") + word.partition(" ")[0].rstrip(".,;:!?)]")
    return len(quoted) > 2 and _QUOTES.get(quoted[0]) == quoted[-1]


def _code_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _CODE.finditer(text)] if "`" in text else []


def _is_within(spans: list[tuple[int, int]], place: int) -> bool:
    """Whether a place is in one of the spans, which are in order."""
    index = bisect_right(spans, place, key=itemgetter(0)) - 1
    return index >= 0 and place < spans[index][1]


def _is_html(text: str, token: str) -> bool:
    """Whether `<s>` or `<mask>` is an element, closed as often as opened."""
    opening = _HTML.get(token.strip("</>"))
    return opening is not None and 0 < len(opening.findall(text)) == text.count(f"</{token.strip('</>')}>")
