"""Rows of the side tables: requests, observations, tokens, positions, findings, forced pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from compare.outcomes import ComparedPair
from compare.position_scores import NUMBER_COLUMNS
from compare.row_values import (
    float32,
    float32_column,
    float64,
    json_text,
    maybe_text,
    microseconds,
    moment,
    text,
    texts,
    uint16,
    uint32,
    uint32_column,
)
from compare.store.native_columns import Lists, Words
from ingest.observation import Observation
from ingest.packed_answer import pack
from ingest.records import MirroredRequest, SourcePosition
from ingest.reference_answers import KnownAnswer

DISPLAY_ALTERNATIVES = 5
"""How many alternatives of a token are stored, for display; numbers are computed from the full list."""

FORCED_NUMBERS = ("kl_lower_nats", "js_lower_nats", "js_upper_nats", "probability_change", "top1_agreement")
"""The numbers of its positions that a forced pair's row keeps."""

Row = dict[str, Any]


def position_columns(position: SourcePosition) -> Row:
    """The source position, as every table has it."""
    return {
        "topic": text(position.topic),
        "topic_id": text(position.topic_id),
        "partition": position.partition,
        "offset": position.offset,
    }


def key_columns(compared: ComparedPair) -> Row:
    """What every table with one row a pair begins with."""
    mirrored = compared.pair.mirrored
    return {
        "experiment": compared.pair.experiment,
        "candidate": compared.pair.candidate_name,
        **position_columns(mirrored.position),
        "attempt_id": compared.attempt_id,
        "ingested_at": mirrored.ingested_at,
        "version": microseconds(mirrored.ingested_at),
    }


def request_row(mirrored: MirroredRequest) -> Row:
    """One row of `requests`."""
    production, served = mirrored.production, mirrored.served_by
    return {
        **position_columns(mirrored.position),
        "request_id": text(mirrored.request_id),
        "request_hash": mirrored.request_hash,
        "mirrored_at": mirrored.mirrored_at,
        "ingested_at": mirrored.ingested_at,
        "sent_at": moment(mirrored.sent_at),
        "is_clock_suspect": mirrored.is_clock_suspect,
        "has_lone_surrogates": mirrored.has_lone_surrogates,
        "tenant": text(mirrored.tenant),
        "route": text(mirrored.route),
        "endpoint": text(mirrored.endpoint),
        "served_model": text(served.model or mirrored.served_model),
        "served_engine": text(served.engine or ""),
        "served_engine_version": text(served.engine_version or ""),
        "served_quantization": text(served.quantization or ""),
        "served_weights_sha256": text(served.weights_sha256 or ""),
        "served_config_hash": text(served.config_hash or ""),
        "source_format": text(mirrored.source_format),
        "tags": {text(key): text(value) for key, value in mirrored.tags.items()},
        "body": json_text(mirrored.body),
        "production_status": uint16(production.status) if production else None,
        "production_latency_ms": float32(production.latency_ms) if production else None,
        "production_body": json_text(production.body) if production and production.body is not None else None,
        "version": microseconds(mirrored.ingested_at),
    }


def observations_of(compared: ComparedPair) -> Iterator[tuple[str, str, dict[str, Any], Observation]]:
    """Role, endpoint name, sent body and observation of every call made for the pair."""
    pair = compared.pair
    yield "reference", pair.reference_name, pair.reference_body, pair.reference
    yield "candidate", pair.candidate_name, pair.candidate_body, pair.candidate
    if pair.reference_again is not None:
        name = pair.reference_again_name or pair.reference_name
        yield "reference_again", name, pair.reference_body, pair.reference_again
    if pair.candidate_again is not None:
        yield "candidate_again", pair.candidate_name, pair.candidate_body, pair.candidate_again


def _observation_key(compared: ComparedPair, role: str, endpoint_name: str) -> Row:
    key = key_columns(compared)
    del key["candidate"]
    return {**key, "role": role, "endpoint_name": endpoint_name}


def observation_row(
    compared: ComparedPair, role: str, endpoint_name: str, sent_body: dict[str, Any], seen: Observation
) -> Row:
    """One row of `observations`."""
    failure, timings = seen.failure, seen.timings
    reused = {answer.role for answer in compared.pair.reference_answers if answer.is_reused}
    return {
        **_observation_key(compared, role, endpoint_name),
        "request_id": text(compared.pair.mirrored.request_id),
        "sent_body": json_text(sent_body),
        "text": text(seen.text),
        "reasoning": text(seen.reasoning),
        "tool_calls.name": [text(call.name) for call in seen.tool_calls],
        "tool_calls.arguments": [text(call.arguments) for call in seen.tool_calls],
        "tool_calls.id": [text(call.id or "") for call in seen.tool_calls],
        "finish_reason": maybe_text(seen.finish_reason),
        "prompt_tokens": uint32(seen.prompt_tokens),
        "completion_tokens": uint32(seen.completion_tokens),
        "total_ms": float32(timings.total_ms) if timings else None,
        "first_token_ms": float32(timings.first_token_ms) if timings else None,
        "failure_kind": failure.kind.value if failure else None,
        "failure_status": uint16(failure.status) if failure else None,
        "failure_message": text(failure.message) if failure else None,
        "reported_model": maybe_text(seen.reported_model),
        "notes": texts(seen.notes),
        "has_done": seen.has_done,
        "is_reused": role in reused,
    }


def answer_rows(compared: ComparedPair) -> Iterator[tuple[str, Row]]:
    """The role and the row of `reference_answers` of each answer that is to be kept.

    One that was known is there already.
    """
    pair, key = compared.pair, key_columns(compared)
    del key["candidate"], key["attempt_id"]
    seen = {"reference": pair.reference, "reference_again": pair.reference_again}
    for answer in pair.reference_answers:
        observation = seen[answer.role]
        if observation is not None and not answer.is_reused:
            packed = pack(KnownAnswer(observation, pair.vocabulary_size))
            yield answer.role, {**key, "asked_hash": answer.asked_hash, "answer": packed}


def token_row(compared: ComparedPair, role: str, endpoint_name: str, seen: Observation) -> Row | None:
    """One row of `tokens`, or None where the endpoint gave no logprobs."""
    tokens = seen.tokens
    if not tokens:
        return None
    # No object a token: an answer has thousands of alternatives, and few of them are stored.
    columns = tokens.columns
    start, sizes = columns.start[:-1], np.diff(columns.start)
    shown = np.minimum(sizes, DISPLAY_ALTERNATIVES)
    is_shown = np.arange(len(columns.top_logprob)) - np.repeat(start, sizes) < DISPLAY_ALTERNATIVES
    ends = np.cumsum(shown)
    return {
        **_observation_key(compared, role, endpoint_name),
        "token": tokens.packed_texts,
        "token_id": uint32_column(columns.id),
        "logprob": float32_column(columns.logprob),
        "ranked": np.minimum(columns.ranked, 255).astype(np.uint8),
        "top_token": Lists(ends, (tokens.top_texts(DISPLAY_ALTERNATIVES),)),
        "top_logprob": Lists(ends, (float32_column(columns.top_logprob[is_shown]),)),
    }


def positions_row(compared: ComparedPair) -> Row | None:
    """One row of `positions`, or None where no position could be scored."""
    positions = compared.comparison.positions
    if not positions:
        return None
    return {
        **key_columns(compared),
        "index": np.array(positions.indices, dtype=np.uint32),
        **{name: float32_column(positions.column(name)) for name in NUMBER_COLUMNS},
        "role": _words(positions.roles),
    }


def _words(texts: list[str]) -> Words:
    codes = {word: code for code, word in enumerate(dict.fromkeys(texts))}
    return Words(tuple(codes), np.fromiter(map(codes.__getitem__, texts), np.uint8, len(texts)))


def findings_row(compared: ComparedPair) -> Row:
    """One row of `findings`; also without any, so that a pair compared again loses its old ones."""
    findings = compared.comparison.findings
    return {
        **key_columns(compared),
        "mirrored_at": compared.pair.mirrored.mirrored_at,
        "finding.family": [finding.family.value for finding in findings],
        "finding.code": [text(finding.code) for finding in findings],
        "finding.side": [finding.side for finding in findings],
        "finding.message": [text(finding.message) for finding in findings],
        "finding.is_fault": [finding.is_fault for finding in findings],
        "finding.unit": [finding.unit for finding in findings],
        "finding.start": [uint32(finding.start) or 0 for finding in findings],
        "finding.end": [uint32(finding.end) or 0 for finding in findings],
        "finding.measured": [float64(finding.measured) for finding in findings],
        "finding.threshold": [float64(finding.threshold) for finding in findings],
    }


def forced_columns(compared: ComparedPair) -> Row | None:
    """The token columns of `forced_pairs`, or None where the plan did not ask for forced scoring."""
    forced = compared.pair.forced
    if forced is None:
        return None
    reference, candidate = forced.reference, forced.candidate
    scores = compared.comparison.forced_positions
    return {
        "unscored_reason": maybe_text(forced.unscored),
        "token_id": [uint32(token.id) or 0 for token in reference],
        "token": [text(token.text) for token in reference],
        "reference_logprob": [float32(token.logprob) for token in reference],
        "candidate_logprob": [float32(token.logprob) for token in candidate],
        "reference_top1_token": [text(token.top[0].text) if token.top else None for token in reference],
        "candidate_top1_token": [text(token.top[0].text) if token.top else None for token in candidate],
        **{name: scores.numbers(name) for name in FORCED_NUMBERS},
        "role": scores.roles,
    }
