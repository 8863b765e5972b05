"""Family `garbage`, the words' part: words without a sentence, and sentences of what are no words.

Nothing here knows what a language's words are. Salad is told by comparison: the other side answers the
same request in sentences. What is no word is told by its shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.asked import is_asked_for
from compare.detectors.debris import detect_debris
from compare.detectors.facts import AnswerFacts
from compare.detectors.languages import function_counts
from compare.detectors.odd_pieces import odd_counts
from compare.detectors.repetition import stuttered_words
from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_DIGIT = re.compile(r"[0-9]")
_SENTENCE_MARK = re.compile(
    r"[.!?;:,](?:\s|$)|[\u3002\uff0c\uff01\uff1f\u3001\u0964\u0965\u060c\u061f\u06d4]"
)
_TOLD_SCRIPTS = frozenset({"LATIN", "CYRILLIC", ""})
_MOST_ROWS = 64
_LAST_WORDS = 64
_LAST_SHARE = 0.8
"""No 64 words in a row of prose in any of the languages have as many function words."""
_FLUENT_SHARE = 0.35  # what has the function words of prose is prose, whatever names are in it
_ASKS_WORDS = re.compile(
    r"\b(?:words?|keywords?|tags?|names?|list|synonyms?|rhym\w+|random|lorem|password|cipher|anagrams?|code"
    r"|seed (?:phrases?|words)|mnemonics?|pass ?phrases?|dice ?ware|bip-?39|encrypt\w*|encod\w+"
    r"|rot-?13|vigen\w+|sequences?|dna|rna|genom\w+|primers?|hash\w*"
    r"|gibberish|numerals?|notation|morse|chords?|moves?|vocabular\w+|regex|translate|acronym|abbreviat\w+)\b|单词|列表",
    re.IGNORECASE,
)

_ASKS_STRINGS = re.compile(
    r"passwords?\b|pass ?phrases?|passcodes?"
    r"|random(?:ly)? (?:\w+ )?(?:strings?|characters?|bytes?|letters?|keys?|tokens?)"
    r"|cipher|encrypt|encod|obfuscat|gibberish|\bleet|\bbase ?\d\d|ascii ?85|uuencod",
    re.IGNORECASE,
)
_ASKS_FUNCTION_WORDS = re.compile(
    r"(?:stop|function|filler|common|frequent|short)[ -]?words?|prepositions|conjunctions|pronouns"
    r"|determiners|definite articles?|auxiliar|grammatical words|words? (?:by|of) frequency",
    re.IGNORECASE,
)


def detect_words(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield at most one of `word_salad`, `odd_words`, `lost_spaces` and `debris`, on the answer's text."""
    text = subject.observation.text
    if len(text) < settings.fill_min_characters:
        return
    stuttered = stuttered_words(subject.answer.text, settings)
    if len(stuttered) >= settings.stutter_min_words and not is_asked_for(subject, stuttered[0]):
        said = f"unrelated words are each repeated: {', '.join(stuttered[:5])}"
        yield _finding(subject, "word_salad", said, float(len(stuttered)), settings.stutter_min_words)
        return
    if (
        (finding := _salad(subject, settings)) is not None
        or (finding := _odd_words(subject, settings)) is not None
        or (finding := _lost_spaces(subject, settings)) is not None
        or (finding := detect_debris(subject, settings)) is not None
    ):
        yield finding


def _salad(subject: Subject, settings: DetectorSettings) -> Finding | None:
    """Find an answer of function words only, or of words without any, beside an answer in sentences."""
    other, words = subject.other_answer, subject.answer.words
    if other is None or len(words) < settings.salad_min_words:
        return None
    if (finding := _function_words(subject, other, settings)) is not None:
        return finding
    if len(set(words)) < settings.salad_min_distinct_share * len(words):
        return None  # a loop, which is another family's
    share, healthy = subject.answer.function_share, other.function_share
    if (finding := _few_words(subject, other, settings)) is not None:
        return finding
    if share > settings.salad_max_function_share or not _is_prose(other, healthy):
        return None
    if subject.answer.main_script not in _TOLD_SCRIPTS:
        return None  # of these no function words are known
    if _has_digits(subject.observation.text) or _ASKS_STRINGS.search(subject.prompt):
        return None
    if subject.observation.text.count(" ") < len(words) / 2 or _ASKS_WORDS.search(
        subject.request.last_user_text
    ):
        return None
    known = frozenset(other.words) | frozenset(subject.prompt.lower().split())
    overlap = sum(word in known for word in words) / len(words)
    marks = len(_SENTENCE_MARK.findall(subject.observation.text))
    is_one_line = subject.observation.text.strip().count("\n") <= len(words) / 15
    if (
        overlap <= settings.salad_max_overlap
        and is_one_line
        and marks <= len(words) / 12
        and not any(mark in subject.observation.text for mark in "{}=`|")
    ):
        said = (
            f"{len(words)} words, {overlap:.0%} of them in the request or the other answer, and no sentence"
        )
        return _finding(subject, "word_salad", said, overlap, settings.salad_max_overlap)
    return None


def _function_words(subject: Subject, other: AnswerFacts, settings: DetectorSettings) -> Finding | None:
    """Find an unfinished answer that is, or ends in, function words only, unlike the other side's."""
    if subject.is_finished or not other.words or _ASKS_FUNCTION_WORDS.search(subject.prompt):
        return None
    threshold, healthy = settings.function_word_share, other.function_share
    words, share = subject.answer.words, subject.answer.function_share
    # There are few function words: a long salad cannot but repeat them, so a stretch of it is looked at.
    last = words[-_LAST_WORDS:]
    if len(set(last)) < settings.salad_min_distinct_share * len(last):
        return None  # a loop, which is another family's
    if share < threshold and len(words) > _LAST_WORDS:
        share, threshold = max(function_counts(last).values(), default=0) / len(last), _LAST_SHARE
    if share < threshold or healthy >= share - 0.2:
        return None
    if len(_SENTENCE_MARK.findall(subject.observation.text)) > len(words) / 12:
        return None  # "it is what it is, and that is that": in sentences
    said = f"{share:.0%} of the words are function words, {healthy:.0%} on the other side"
    return _finding(subject, "word_salad", said, share, threshold)


def _few_words(subject: Subject, other: AnswerFacts, settings: DetectorSettings) -> Finding | None:
    """Find an unfinished answer that turns round in a few words, where the other side's prose does not.

    The last `few_words_window` words are looked at: healthy prose has 60 % distinct ones or more there.
    """
    window = settings.few_words_window
    words = subject.answer.words[-window:]
    text = subject.observation.text
    if subject.is_finished or not subject.other_finished or len(words) < window:
        return None
    if any(mark in text for mark in "{}=`|"):
        return None
    own = len(set(words)) / window
    peers = other.words[-window:]
    if own > settings.few_words_distinct_share or len(set(peers)) < (own + 0.2) * len(peers) or not peers:
        return None
    return _finding(
        subject,
        "word_salad",
        f"the last {window} words are {len(set(words))} words over and over",
        own,
        settings.few_words_distinct_share,
    )


def _is_prose(answer: AnswerFacts, share: float) -> bool:
    return len(answer.words) >= 12 and share >= 0.25


def _odd_words(subject: Subject, settings: DetectorSettings) -> Finding | None:
    """Find many pieces that no word looks like, where prompt and other side have few."""
    text = subject.observation.text
    if subject.answer.function_share >= _FLUENT_SHARE or any(
        mark in text for mark in ("{", "```", "://", "=", "|")
    ):
        return None  # code and data have words of their own
    if _are_rows(text) or _has_other_script(subject):
        return None  # nor are the others' words told by their shape
    own = subject.answer.odd_counts
    # Checksums, keys and names of hosts have foreign pieces only; noise has both kinds.
    count = own.odd + min(own.foreign, own.odd)
    if count < settings.odd_words_min or count < settings.odd_words_share * own.pieces:
        return None
    if _ASKS_STRINGS.search(subject.prompt):
        return None
    known = [odd_counts(subject.prompt)]
    if subject.other_answer is not None:
        known.append(subject.other_answer.odd_counts)
    for one in known:
        odd = one.odd + one.foreign
        if odd >= settings.odd_words_min and odd > settings.odd_words_share / 3 * one.pieces:
            return None
    share = count / own.pieces
    said = f"{count} of {own.pieces} words look like no words ({share:.0%})"
    return _finding(subject, "odd_words", said, share, settings.odd_words_share)


def _has_other_script(subject: Subject) -> bool:
    """Whether request and answer share a script whose words are not told by their shape, mixed with Latin."""
    own = frozenset(subject.answer.letters) - _TOLD_SCRIPTS
    return bool(own & frozenset(subject.request.letters)) or subject.answer.main_script not in _TOLD_SCRIPTS


def _are_rows(text: str) -> bool:
    """Whether each line has the same number of commas, semicolons or tabs: then they are its columns."""
    lines = [line for line in text.split("\n", _MOST_ROWS)[:_MOST_ROWS] if line.strip()]
    if len(lines) > 2:
        lines.pop()  # a limit may have cut it
    if len(lines) < 2:
        return False
    return any(0 < lines[0].count(mark) == min(counts) == max(counts) for mark, counts in _counts(lines))


def _counts(lines: list[str]) -> Iterable[tuple[str, list[int]]]:
    return ((mark, [line.count(mark) for line in lines]) for mark in ",;\t")


def _has_digits(text: str) -> bool:
    """Whether a fourth of the first pieces hold digits: codes and keys, not words."""
    pieces = text[:4096].split()
    return sum(_DIGIT.search(piece) is not None for piece in pieces) > len(pieces) / 4


def _lost_spaces(subject: Subject, settings: DetectorSettings) -> Finding | None:
    """Find text without spaces between its words, where the other side has them."""
    text, other = subject.observation.text.strip(), subject.other
    if other is None or not text.isascii() or len(text) < settings.lost_spaces_min_characters:
        return None
    spaces = text.count(" ") + text.count("\n")
    if spaces > len(text) / 60:
        return None
    letters = sum(map(str.isalpha, text))
    if letters < 0.85 * len(text) or spaces > letters / 60:
        return None
    if other.text.count(" ") < len(other.text) / 12 or "".join(other.text.split())[:12] != text[:12]:
        return None
    said = f"{letters} letters with {spaces} spaces; the other side has {other.text.count(' ')}"
    return _finding(subject, "lost_spaces", said, float(letters), settings.lost_spaces_min_characters)


def _finding(subject: Subject, code: str, said: str, measured: float, threshold: float) -> Finding:
    part = subject.answer.text
    return subject.finding(
        Family.GARBAGE,
        code,
        said,
        place=part.place,
        span=(0, len(part.text)),
        measured=measured,
        threshold=float(threshold),
    )
