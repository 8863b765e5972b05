"""Texts of prompts and answers, for sessions whose role reads none."""

from __future__ import annotations

import re

import msgspec

from compare.store.answer import Result

TEXT_VIEWS = frozenset(
    {
        "dead_letters_v1",
        "golden_cases_v1",
        "golden_results_v1",
        "observations_v1",
        "pair_beside_v1",
        "positions_v1",
        "requests_v1",
        "tokens_v1",
    }
)
"""Views with texts of prompts or answers."""
TEXT_COLUMNS = frozenset(
    {
        "candidate_top1_token",
        "differing_paths",
        "divergence_candidate_token",
        "divergence_reference_token",
        "message",
        "reasons",
        "reference_top1_token",
        "search_text",
        "token",
    }
)
"""Columns of the other views that quote them."""
_WORD = re.compile(r"\w+")


class TextHidden(Exception):  # noqa: N818 - no error: a role without texts asked for one
    """The role of this session reads no texts of prompts and answers."""


def refuse_texts(sql: str) -> None:
    """Raises TextHidden if the statement names a view with texts."""
    if not TEXT_VIEWS.isdisjoint(_WORD.findall(sql)):
        raise TextHidden


def without_text(answer: Result, instead: str) -> Result:
    """The answer with `instead` in columns that quote texts."""
    hidden = [index for index, name in enumerate(answer.column_names) if name in TEXT_COLUMNS]
    if not hidden:
        return answer
    rows = [list(row) for row in answer.rows]
    for row in rows:
        for index in hidden:
            row[index] = [instead] if isinstance(row[index], list | tuple) else instead
    return msgspec.structs.replace(answer, rows=[tuple(row) for row in rows])
