"""Family `language`: the answer is in a script or a language that nobody used or asked for.

Reasoning is left out: a model may think in any language. Greek letters are mathematics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.facts import named_in, words_of
from compare.detectors.languages import FUNCTION_WORDS, language_of
from compare.detectors.scripts import group_of, letters_by_script
from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_BRACKETED = re.compile(
    r"\([^()]{1,80}\)|\uff08[^\uff08\uff09]{1,80}\uff09|\"[^\"\n]{1,80}\"|\u201c[^\u201c\u201d\n]{1,80}\u201d"
    r"|'[^'\n]{1,40}'|`[^`\n]{1,80}`|\u00ab[^\u00ab\u00bb\n]{1,80}\u00bb|\u300c[^\u300c\u300d\n]{1,80}\u300d"
    r"|\u300a[^\u300a\u300b\n]{1,80}\u300b|\u300e[^\u300e\u300f\n]{1,80}\u300f|\u3010[^\u3010\u3011\n]{1,80}\u3011"
    r"|\u201e[^\u201e\u201c\u201d\n]{1,80}[\u201c\u201d]"
)
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MAX_PROMPT_SHARE = 0.02
_OWN_WORDS_MIN = 4
_HEAD = 2000
_BETWEEN = " \n\u200e\u200f\u2068\u2069"
_FOREIGN = re.compile(r"[\u0370-\u1dff\u3041-\ud7af]+")
_LATIN_RUN = re.compile(r"[A-Za-z\u00c0-\u024f]{2,}")


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield at most one of `script_switch`, `script_slip`, `script_left` and `language_switch`."""
    if len(subject.observation.text) < 2:
        return
    for look in (_script_switch, _script_left, _language_switch):
        if (finding := look(subject, settings)) is not None:
            # Asked last: it is the dearest question, and nearly every answer needs no excuse.
            if not subject.request.is_about_languages:
                yield finding
            return


def _script_switch(subject: Subject, settings: DetectorSettings) -> Finding | None:
    """Find letters of a script that is neither the prompt's nor the other side's, nor named by the prompt."""
    text = subject.observation.text
    if text.isascii():
        return None
    sources = [subject.request.letters]
    if subject.other_answer is not None:
        sources.append(subject.other_answer.letters)
    known = frozenset().union(*sources)
    if not known:
        return None
    counts = subject.answer.letters
    mixture = {name for name in counts if name not in known} | {"LATIN"}
    for script, count in counts.items():
        group = group_of(script)
        if script in ("LATIN", "GREEK") or any(_uses(letters, group) for letters in sources):
            continue
        if group & subject.request.named_scripts:
            continue
        # One word of another script is a name; a switch has many, or comes where all scripts mix.
        bare = _bare(text, script)
        if sum(map(len, bare)) >= settings.language_min_letters or len(mixture) >= settings.noise_min_scripts:
            return _finding(
                subject,
                "script_switch",
                f"{count} letters are {script}, which neither prompt nor other side use",
                count,
                settings.language_min_letters,
            )
        # One letter written into a word is a slip, whatever the other side says.
        slipped = _glued(text, bare) or (bare if subject.other_answer is not None else [])
        least = settings.language_slip_letters if slipped is bare else 1
        is_new = not group & known and (slipped is not bare or script not in named_in(text))
        if is_new and sum(map(len, slipped)) >= least:
            return _finding(
                subject,
                "script_slip",
                f"{script} slips into other words: {shorten(', '.join(slipped))}",
                sum(map(len, slipped)),
                least,
            )
    return None


def _uses(letters: dict[str, int], group: frozenset[str]) -> bool:
    """Whether more than a stray letter or two of a text are of these scripts."""
    return sum(letters.get(name, 0) for name in group) > _MAX_PROMPT_SHARE * sum(letters.values())


def _bare(text: str, script: str) -> list[str]:
    """Runs of `script` outside code, brackets and quotes, and not explained in brackets right after."""
    plain = _BRACKETED.sub(lambda match: "(" + " " * (len(match.group()) - 2) + ")", _CODE.sub(" ", text))
    runs = []
    for match in _FOREIGN.finditer(plain):
        if plain[match.end() : match.end() + 8].lstrip(_BETWEEN)[:1] in (
            "(",
            "\uff08",
        ) or script not in letters_by_script(match.group()):
            continue
        runs.append(match.group())
    return runs


def _glued(text: str, runs: list[str]) -> list[str]:
    """The runs that are written into a Latin word without a space."""
    return [run for run in runs if re.search(rf"[A-Za-z]{re.escape(run)}|{re.escape(run)}[A-Za-z]", text)]


def _script_left(subject: Subject, settings: DetectorSettings) -> Finding | None:
    """Find an answer in Latin script to a question in another one, where the other side did not leave it."""
    question = subject.last_user_text
    asked = {} if question.isascii() else letters_by_script(question)
    if not asked:
        return None
    if asked.get("KANA", 0) >= settings.language_min_letters:
        asked["KANA"] += asked.pop("HAN", 0)  # Japanese is written in both
    script = max(asked, key=lambda name: asked[name])
    if (
        script in ("LATIN", "GREEK")
        or "LATIN" in subject.request.named_scripts
        or asked[script] < settings.language_min_letters
    ):
        return None
    group = group_of(script) | ({"HAN"} if script in ("KANA", "HANGUL") else set())
    if sum(asked.get(name, 0) for name in group) < 0.7 * sum(asked.values()):
        return None
    if (finding := _kana_left(subject, asked, settings)) is not None:
        return finding
    if subject.other_answer is not None and not any(name in group for name in subject.other_answer.letters):
        return None
    text, letters = subject.observation.text, subject.answer.letters
    if "```" in text:
        text = _CODE.sub(" ", text)
        letters = letters_by_script(text)
    words = _LATIN_RUN.findall(text)
    is_data = "{" in text or "://" in text
    if any(name in group for name in letters) or len(words) < settings.language_min_letters or is_data:
        return None
    return _finding(
        subject,
        "script_left",
        f"the question is in {script}, the answer has {len(words)} words and no letter of it",
        len(words),
        settings.language_min_letters,
    )


def _kana_left(subject: Subject, asked: dict[str, int], settings: DetectorSettings) -> Finding | None:
    """Find a Chinese answer to a Japanese question: no Japanese sentence is without kana."""
    letters = subject.answer.letters
    count = letters.get("HAN", 0)
    if asked.get("KANA", 0) < settings.language_min_letters or "KANA" in letters:
        return None
    if count < 2 * settings.language_min_letters or subject.request.named_scripts:
        return None
    if subject.other_answer is not None and "KANA" not in subject.other_answer.letters:
        return None
    return _finding(
        subject,
        "script_left",
        f"the question is Japanese, the answer has {count} Chinese letters and no kana",
        count,
        2 * settings.language_min_letters,
    )


def _language_switch(subject: Subject, settings: DetectorSettings) -> Finding | None:
    """Find an answer, or its second half, in another language than the question's and the other side's."""
    words = subject.answer.words
    if len(words) < settings.language_min_letters:
        return None
    known = {subject.request.language}
    if subject.other_answer is not None:
        if subject.other_answer.language is None:
            return None  # the other side's language is not told: it may be this one
        known.add(subject.other_answer.language)
    if known == {None}:
        return None
    for stretch, language in (
        ("the answer", subject.answer.language),
        ("its second half", language_of(words[len(words) // 2 :])),
    ):
        if language is None or language in known or subject.request.named_scripts:
            continue
        # "a" and "no" are words of several languages: what speaks must be the new language's own.
        shared = frozenset().union(*(FUNCTION_WORDS[name] for name in known if name))
        own = FUNCTION_WORDS[language] - shared
        if subject.request.language is None and own.intersection(words_of(subject.last_user_text[:_HEAD])):
            continue  # a short question is asked in this language, it seems
        if len(own.intersection(words)) >= _OWN_WORDS_MIN:
            said = " or ".join(sorted(name for name in known if name))
            return _finding(
                subject,
                "language_switch",
                f"{stretch} is in {language!r}, not in {said}",
                len(words),
                settings.language_min_letters,
            )
    return None


def _finding(subject: Subject, code: str, message: str, measured: int, threshold: int) -> Finding:
    return subject.finding(
        Family.LANGUAGE,
        code,
        message,
        place="text",
        span=(0, len(subject.observation.text)),
        measured=float(measured),
        threshold=float(threshold),
    )
