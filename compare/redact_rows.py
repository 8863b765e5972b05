"""Rows of the store without what the redaction rules take out: the one place where that is done.

Pairs are compared on the real answers first; then their rows pass through here. Every string of a row does,
but for the columns that hold Gnomon's own words, so a column that is added later is covered unless it is
listed as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compare.outcomes import ComparedPair, OtherOutcome
from compare.row_values import json_text, text
from compare.side_rows import Row, observations_of
from ingest.observation import Observation
from ingest.redact import MASK, Redactor, Taken
from ingest.tokens import Tokens

TABLES = frozenset(
    {
        "requests",
        "observations",
        "tokens",
        "findings",
        "noise_pairs",
        "forced_pairs",
        "pairs",
        "outcomes",
        "dead_letters",
    }
)
"""Tables that may hold a client's or a model's words, so that their rows have `is_redacted`."""

_OWN_WORDS = frozenset(
    {
        "experiment",
        "candidate",
        "reference",
        "role",
        "endpoint_name",
        "topic",
        "topic_id",
        "attempt_id",
        "side",
        "mode",
        "language",
        "kind",
        "verdict",
        "probable_cause",
        "candidate_only_families",
        "reference_only_families",
        "candidate_fault_families",
        "reference_fault_families",
        "reference_failure_kind",
        "candidate_failure_kind",
        "failure_kind",
        "notes",
        "unscored",
        "unscored_reason",
        "finding.family",
        "finding.code",
        "finding.side",
        "finding.unit",
        "source_format",
        "schema_guess",
        "source",
        "reason",
    }
)
_MESSAGES = frozenset(
    {"finding.message", "failure_message", "reasons", "changes", "differing_paths", "detail"}
)
"""Columns that may quote the request or an answer, cut anywhere."""
_ROOTS = ("request_id", "tenant", "route", "endpoint")
_ANSWER_TEXTS = ("text", "reasoning")
_MAX_ROUNDS = 3
_OWN_HEAD = re.compile(r"(?:reference|candidate): [a-z_]+(?:/[a-z_0-9]+| \d{3})?: ")
_PLAIN_DIGEST = re.compile(r"sha256 ([0-9a-f]{64})")


class RowRedactor:
    """Redacts the rows of one record at a time. Any thread may call it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def of_pair(self, compared: ComparedPair, rows: Sequence[tuple[str, Row]]) -> list[Row]:
        """The rows of one pair, in the same order, each with `is_redacted` where its table has that.

        Values that a path or a field names are looked for in everything else of the record, so texts are
        gone through until no more are found.
        """
        taken, own = Taken(), dict[tuple[str, str], Taken]()
        for _ in range(_MAX_ROUNDS):
            known = len(taken.values)
            made = [self._texts(compared, table, row, taken, own) for table, row in rows]
            if len(taken.values) == known:
                break
        else:
            taken.is_everything = True
            made = [self._texts(compared, table, row, taken, own) for table, row in rows]
        hidden = _Hidden(self._redactor, compared, taken, own)
        done = []
        for (table, row), changed in zip(rows, made, strict=True):
            if table == "tokens":
                changed = hidden.token_row(changed)
            elif table == "forced_pairs":
                changed = hidden.forced_row(changed)
            elif table == "pairs":
                changed = hidden.divergence(changed)
            done.append(self._finished(table, row, self._messages(changed, taken)))
        return done

    def of_outcome(self, outcome: OtherOutcome, rows: Sequence[tuple[str, Row]]) -> list[Row]:
        """The rows of a skipped, failed or dead-lettered record."""
        taken = Taken()
        letter = self._redactor.letter(outcome.raw, outcome.detail) if outcome.raw is not None else None
        done = []
        for table, row in rows:
            changed = self._texts(None, table, row, taken, {})
            changed["detail"] = _PLAIN_DIGEST.sub(self._keyed_digest, row["detail"])
            changed = self._messages(changed, taken)
            if letter is not None:
                changed["detail"] = text(letter.detail)
                if table == "dead_letters":
                    changed["key"], changed["value"] = letter.raw.key, letter.raw.value
                    changed["headers"] = [(text(name), value) for name, value in letter.raw.headers]
            done.append(self._finished(table, row, changed))
        return done

    def _keyed_digest(self, found: re.Match[str]) -> str:
        return f"hmac-sha256 {self._redactor.keyed(found[1].encode())}"

    def _finished(self, table: str, row: Row, changed: Row) -> Row:
        if table in TABLES:
            changed["is_redacted"] = any(changed[name] != row[name] for name in row if name != "request_hash")
        return changed

    def _texts(
        self,
        compared: ComparedPair | None,
        table: str,
        row: Row,
        taken: Taken,
        own: dict[tuple[str, str], Taken],
    ) -> Row:
        """All but tokens and messages."""
        redactor, changed = self._redactor, dict(row)
        if table not in TABLES:
            return changed
        for name in _ROOTS:
            if name in row:
                changed[name] = redactor.named(row[name], name, taken) or ""
        if compared is not None and table == "requests":
            mirrored = compared.pair.mirrored
            changed["body"] = self._json(mirrored.body, "request", taken)
            changed["tags"] = redactor.texts(redactor.named(row["tags"], "tags", taken) or {}, taken)
            if mirrored.production is not None and mirrored.production.body is not None:
                body = {"body": mirrored.production.body}
                made = redactor.named(body, "response", taken) or {}
                changed["production_body"] = json_text(redactor.texts(made, taken).get("body"))
        if compared is not None and table == "observations":
            self._observation(compared, row, changed, taken, own)
        if "request_hash" in row:
            # A plain hash of the whole request would let whoever knows the rest try the missing part.
            changed["request_hash"] = redactor.keyed(row["request_hash"].encode())
        skipped = _OWN_WORDS | _MESSAGES | {"body", "production_body", "sent_body", "tags", "request_hash"}
        # Their lists are tokens, which follow, and numbers.
        kinds = str if table in ("tokens", "forced_pairs") else str | list
        for name, value in changed.items():
            if name not in skipped and isinstance(value, kinds):
                changed[name] = self._strings(value, taken)
        return changed

    def _observation(
        self,
        compared: ComparedPair,
        row: Row,
        changed: Row,
        taken: Taken,
        own: dict[tuple[str, str], Taken],
    ) -> None:
        redactor, key = self._redactor, (row["role"], row["endpoint_name"])
        bodies = {(role, name): body for role, name, body, _ in observations_of(compared)}
        body = bodies[key]
        if "cache_salt" in body:
            # Made from the request's id by a plain hash.
            body = body | {"cache_salt": redactor.keyed(str(body["cache_salt"]).encode())}
            row["sent_body"] = json_text(body)
        changed["sent_body"] = self._json(body, "request", taken)
        calls = [
            {"name": name, "arguments": arguments, "id": call_id}
            for name, arguments, call_id in zip(
                row["tool_calls.name"], row["tool_calls.arguments"], row["tool_calls.id"], strict=True
            )
        ]
        answer: dict[str, Any] = {name: row[name] for name in _ANSWER_TEXTS} | {"tool_calls": calls}
        mine = own[key] = taken.beside()
        made = redactor.named(answer, "answer", mine) or {}
        made = redactor.texts(made, mine)
        for name in _ANSWER_TEXTS:
            changed[name] = made.get(name) or ""
        calls = made.get("tool_calls")
        calls = calls if isinstance(calls, list) else []
        for name in ("name", "arguments", "id"):
            values = [call.get(name) if isinstance(call, dict) else call for call in calls]
            changed[f"tool_calls.{name}"] = [value if isinstance(value, str) else "" for value in values]
        taken.join(mine)

    def _json(self, value: Any, root: str, taken: Taken) -> str:
        return json_text(self._redactor.texts(self._redactor.named(value, root, taken), taken))

    def _strings(self, value: Any, taken: Taken) -> Any:
        if isinstance(value, str):
            return self._redactor.text(value, taken)
        if isinstance(value, list):
            return [self._strings(item, taken) for item in value]
        return value

    def _messages(self, row: Row, taken: Taken) -> Row:
        for name in _MESSAGES & row.keys():
            value = row[name]
            if isinstance(value, str):
                row[name] = self._message(value, taken)
            elif isinstance(value, list):
                row[name] = [self._message(item, taken) for item in value]
        return row

    def _message(self, value: str, taken: Taken) -> str:
        head = found.group() if (found := _OWN_HEAD.match(value)) else ""
        return head + self._redactor.message(value[len(head) :], taken)


class _Hidden:
    """Which tokens of each answer are hidden, and the rows of tokens without them."""

    def __init__(
        self, redactor: Redactor, compared: ComparedPair, taken: Taken, own: dict[tuple[str, str], Taken]
    ) -> None:
        self._redactor = redactor
        self._taken = taken
        self._forced = compared.pair.forced
        self._answers: dict[tuple[str, str], dict[int, str]] = {}
        for role, name, _, seen in observations_of(compared):
            self._answers[role, name] = self._places(seen, own.get((role, name)))
        self._reference = self._answers["reference", compared.pair.reference_name]

    def _places(self, seen: Observation, own: Taken | None) -> dict[int, str]:
        hidden, pieces = self._in(seen.tokens), _pieces(seen.tokens)
        joined = b"".join(pieces)
        for value in own.named if own else ():
            at = joined.find(value)
            if at < 0:
                # The answer's text was put together otherwise than its tokens: none can be trusted.
                return dict.fromkeys(range(len(pieces)), MASK)
            while at >= 0:
                for place in _covering(pieces, at, len(value)):
                    hidden.setdefault(place, MASK)
                at = joined.find(value, at + len(value))
        return hidden

    def _in(self, tokens: Tokens) -> dict[int, str]:
        """Hidden places, and what stands there: for a secret's first token the replacement, then nothing."""
        if self._taken.is_everything:
            return dict.fromkeys(range(len(tokens)), MASK)
        pieces, hidden = _pieces(tokens), dict[int, str]()
        for cut in self._redactor.cuts(b"".join(pieces), self._taken):
            for number, place in enumerate(_covering(pieces, cut.start, cut.end - cut.start)):
                hidden.setdefault(place, "" if number else cut.instead.decode("utf-8", "replace"))
        return hidden

    def token_row(self, row: Row) -> Row:
        """A row of `tokens`: ids say as much as texts, and alternatives may hold a piece of the secret."""
        hidden = self._answers[row["role"], row["endpoint_name"]]
        top = [
            [MASK] * len(entries) if place in hidden else self._alternatives(entries)
            for place, entries in enumerate(row["top_token"])
        ]
        return row | {
            "token": [hidden.get(place, token) for place, token in enumerate(row["token"])],
            "token_id": [None if place in hidden else number for place, number in enumerate(row["token_id"])],
            "top_token": top,
        }

    def forced_row(self, row: Row) -> Row:
        """A row of `forced_pairs`; a hidden id is 0."""
        hidden = self._in(self._forced.reference) if self._forced else {}
        # The same tokens in the same order, of which the answer as a whole may know more.
        hidden = self._reference | hidden
        made: Row = {
            "token": [hidden.get(place, token) for place, token in enumerate(row["token"])],
            "token_id": [0 if place in hidden else number for place, number in enumerate(row["token_id"])],
        }
        for name in ("reference_top1_token", "candidate_top1_token"):
            made[name] = [
                MASK if place in hidden and token is not None else self._alternative(token)
                for place, token in enumerate(row[name])
            ]
        return row | made

    def divergence(self, row: Row) -> Row:
        """The two tokens of the first divergence: each is an alternative to the other."""
        place = row["divergence_position"]
        is_hidden = any(place in hidden for (role, _), hidden in self._answers.items() if "again" not in role)
        names = ("divergence_reference_token", "divergence_candidate_token")
        return row | {
            name: MASK if is_hidden and row[name] is not None else self._alternative(row[name])
            for name in names
        }

    def _alternatives(self, tokens: list[str]) -> list[str]:
        if not self._taken and self._redactor.harmless.issuperset(tokens):
            return tokens
        return [self._alternative(token) or "" for token in tokens]

    def _alternative(self, token: str | None) -> str | None:
        if not token:
            return token
        if self._taken and self._taken.may_be_quoted_in(token.encode("utf-8", "surrogatepass")):
            return MASK
        return self._redactor.text(token, self._taken)


def _pieces(tokens: Tokens) -> list[bytes]:
    """Each token's bytes: those of a character that is split are not its text's."""
    return [
        text.encode("utf-8", "surrogatepass") if raw is None else raw
        for text, raw in zip(tokens.texts, tokens.raws, strict=True)
    ]


def _covering(pieces: Sequence[bytes], start: int, length: int) -> list[int]:
    """Places of the pieces that share a byte with the span."""
    places: list[int] = []
    at = 0
    for place, piece in enumerate(pieces):
        if at >= start + length:
            break
        if at + len(piece) > start and piece:
            places.append(place)
        at += len(piece)
    return places
