"""Words looked for in prompts and answers: within a day, by an index of words, with limits of its own."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dashboards.asked import BY_INDEX, Asked, frame
from dashboards.questions.summary import Series

LONGEST = timedelta(hours=24)
MAX_WORDS = 8
TEXT_LIMITS = {"max_execution_time": 10, "max_rows_to_read": 20_000_000, **BY_INDEX}
"""Seconds, and rows of all tables after the index has left some out, of one search."""

_TOKEN = re.compile(r"[A-Za-z0-9\u0080-\U0010ffff]+")
"""What ClickHouse's token index takes for a word: letters and digits, and all that is not ASCII."""
_BODY = r"lower(replaceAll(replaceAll(body, '\\n', ' '), '\\t', ' '))"
"""As in the index (migration 0156). The body is JSON: its `\\n` would stick to the word behind it."""


class TextSearch(msgspec.Struct, frozen=True):
    """Texts that hold all of `words`, taken up from `start` on and before `end` (UTC, by `ingested_at`).

    A word of ASCII letters and digits counts as a whole word, in any case; another one, such as Chinese,
    wherever it stands.
    """

    words: tuple[str, ...]
    start: datetime
    end: datetime

    def positions(self, values: dict[str, Any]) -> str:
        """A SELECT of (topic_id, partition, offset) with such a prompt or such an answer of the series; its
        values are put into `values`.
        """
        values |= {"text_start": self.start, "text_end": self.end}
        values |= {f"word_{index}": word for index, word in enumerate(self.words)}
        within = " AND ".join(
            f"ingested_at {sign} {{{name}:DateTime64(3, 'UTC')}}"
            for sign, name in ((">=", "text_start"), ("<", "text_end"))
        )
        key = "SELECT topic_id, `partition`, `offset`"
        return (
            f"{key} FROM requests_v1 WHERE {within} AND {self._holds(_BODY)} UNION ALL {key} FROM"
            " observations_v1 WHERE experiment = {experiment:String} AND (role = 'reference' OR role ="
            f" 'candidate' AND endpoint_name = {{candidate:String}}) AND {within} AND"
            f" {self._holds('lower(text)')}"
        )

    def _holds(self, text: str) -> str:
        return " AND ".join(
            f"hasToken({text}, {{word_{index}:String}})"
            if word.isascii()
            else f"positionCaseInsensitiveUTF8({text}, {{word_{index}:String}}) > 0"
            for index, word in enumerate(self.words)
        )


def words_of(text: str) -> tuple[str, ...]:
    """The different words of what was typed, the first MAX_WORDS; none for signs alone."""
    return tuple(dict.fromkeys(word.lower() for word in _TOKEN.findall(text)))[:MAX_WORDS]


def search(
    asked: Asked, series: Series, text: str, start: datetime | None, end: datetime | None
) -> TextSearch | None:
    """The search for what was typed, over the last LONGEST of the range; None if there is no word in it.

    An open range ends with the newest pair of the series.
    """
    words = words_of(text)
    if not words:
        return None
    if end is None:
        end = _newest(asked, series, start)
    first = end - LONGEST
    return TextSearch(words, first if start is None else max(first, start), end)


def _newest(asked: Asked, series: Series, start: datetime | None) -> datetime:
    if series.until is not None:
        # What came since the rollups were made belongs to the newest too.
        return series.until + timedelta(hours=1)
    newest = frame(
        asked,
        "SELECT max(ingested_at) AS at FROM pairs_v1"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String}",
        series.parameters(),
    )["at"].iloc[0]
    at: datetime = newest.to_pydatetime() + timedelta(seconds=1)
    return at if start is None else max(at, start)
