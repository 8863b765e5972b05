"""The verdict on one pair: the table of the design's section 6, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.history import HISTORY_FAULTY
from compare.detectors.request_faults import SEED
from compare.metrics.structure import same_tool_calls
from compare.result import Family, Finding, Scores, Side, Verdict, VerdictKind
from ingest.observation import FailureKind, Observation
from ingest.pair import ResponsePair
from ingest.replay_body import is_greedy
from ingest.settings import CompareSettings

_NO_FAULT_FAMILIES = frozenset({Family.REQUEST, Family.LOGPROBS_FORMAT})
_MAX_REASONS = 8
_SAMPLER_CODES = ("stall", "collapse")
_HINTS = (SEED, "greedy_with_sampling")
"""What a request shares with failures seen elsewhere is no cause by itself."""
_HANGS = (FailureKind.FIRST_TOKEN_TIMEOUT, FailureKind.IDLE_TIMEOUT, FailureKind.TOTAL_TIMEOUT)
_MEMORY = re.compile(
    r"out of memory|\boom\b|cuda error|cudamalloc|kv[ _]cache|no available blocks", re.IGNORECASE
)

_ZERO_WHERE_EQUAL = ("numbers_differ", "keys_differ", "refusal_flip")
"""Scores that must be 0 in an equivalent pair; unscored means that there was nothing to differ in."""


def judge(
    pair: ResponsePair,
    scores: Scores,
    findings: Iterable[Finding],
    settings: CompareSettings,
    tags: tuple[str, ...] = (),
) -> Verdict:
    """Return the verdict: errors first, then faults, then likeness.

    A pair whose likeness cannot be measured (edit similarity unscored, or cosine unscored while the
    texts differ) is `unscored` with the reason, or `diverged` where what is known says so already; it
    never becomes `equivalent` on nothing. `tags` are those of `compare.detect.tags_of`.
    """
    found = tuple(findings)
    if error := _errors(pair, found):
        return error
    candidate = fault_families(found, "candidate")
    reference = fault_families(found, "reference")
    if candidate or reference:
        return _faults(pair, found, candidate, reference, tags)
    return _likeness(pair, scores, settings)


def fault_families(findings: Iterable[Finding], side: Side) -> frozenset[Family]:
    """The fault families that one side shows."""
    return frozenset(
        finding.family
        for finding in findings
        if finding.side == side and finding.is_fault and finding.family not in _NO_FAULT_FAMILIES
    )


def _errors(pair: ResponsePair, findings: tuple[Finding, ...]) -> Verdict | None:
    failed: list[Side] = []
    reasons: list[str] = []
    for side, observation in _sides(pair):
        if (failure := observation.failure) is not None:
            failed.append(side)
            status = "" if failure.status is None else f" {failure.status}"
            reasons.append(f"{side}: {failure.kind}{status}: {failure.message[:160]}")
    if not failed:
        return None
    if len(failed) == 2:
        kind = VerdictKind.BOTH_ERROR
    else:
        kind = VerdictKind.CANDIDATE_ERROR if failed == ["candidate"] else VerdictKind.REFERENCE_ERROR
    return Verdict(
        kind,
        tuple(reasons),
        _error_cause(pair, failed[-1], findings),
        # Findings on the side that did answer, or that explain the error, are kept for the counts.
        _ordered(fault_families(findings, "candidate") - fault_families(findings, "reference")),
        _ordered(fault_families(findings, "reference") - fault_families(findings, "candidate")),
    )


def _error_cause(pair: ResponsePair, side: Side, findings: tuple[Finding, ...]) -> str:
    own = [finding for finding in findings if finding.side == side]
    failure = (pair.candidate if side == "candidate" else pair.reference).failure
    if _is_numeric(own):
        return "numeric"
    if failure is None:
        return "unknown"
    if _MEMORY.search(failure.message):
        return "memory"
    if failure.kind is FailureKind.CONTEXT_EXCEEDED or failure.status in (400, 413, 422):
        return "request"
    if failure.kind is FailureKind.CUT_STREAM:
        return "transport"
    if failure.kind in _HANGS and not _is_greedy(pair, side):
        return "sampler"
    return "engine"


def _is_numeric(findings: Iterable[Finding]) -> bool:
    """Whether numbers are broken. A stall or a collapse of entropy is the sampler's, or a loop's."""
    return any(f.family is Family.LOGITS and f.is_fault and f.code not in _SAMPLER_CODES for f in findings)


def _faults(
    pair: ResponsePair,
    findings: tuple[Finding, ...],
    candidate: frozenset[Family],
    reference: frozenset[Family],
    tags: tuple[str, ...],
) -> Verdict:
    only_candidate, only_reference = candidate - reference, reference - candidate
    if only_candidate and not only_reference:
        kind = VerdictKind.CANDIDATE_WORSE
    elif only_reference and not only_candidate:
        kind = VerdictKind.REFERENCE_WORSE
    else:
        kind = VerdictKind.BOTH_FAULTY
    faults = [f for f in findings if f.is_fault and f.family not in _NO_FAULT_FAMILIES]
    # What one side alone shows decides, so it is said first.
    decisive = only_candidate | only_reference
    faults.sort(key=lambda finding: finding.family not in decisive)
    reasons = [f"{f.side}: {f.family}/{f.code}: {f.message}" for f in faults[:_MAX_REASONS]]
    if len(faults) > _MAX_REASONS:
        reasons.append(f"and {len(faults) - _MAX_REASONS} more findings")
    return Verdict(
        kind,
        tuple(reasons),
        "history" if HISTORY_FAULTY in tags else _fault_cause(pair, findings, candidate, reference),
        _ordered(only_candidate),
        _ordered(only_reference),
    )


def _fault_cause(
    pair: ResponsePair,
    findings: tuple[Finding, ...],
    candidate: frozenset[Family],
    reference: frozenset[Family],
) -> str:
    """Name the cause that explains the rest: a broken distribution explains a loop, a loop a cut."""
    families = (candidate ^ reference) or candidate | reference
    if Family.LOGITS in families and _is_numeric(findings):
        return "numeric"
    if any(f.family is Family.REQUEST and not f.code.startswith(_HINTS) for f in findings):
        return "request"
    for family in (Family.LOGITS, Family.REPETITION):
        if family in families:
            return _choosing_cause(pair, findings, family)
    if Family.GARBAGE in families:
        return "numeric"
    if Family.SSE in families:
        return "transport"
    if Family.TRUNCATION in families:
        return "truncation"
    return "unknown"


def _choosing_cause(pair: ResponsePair, findings: tuple[Finding, ...], family: Family) -> str:
    """The cause of a loop, a stall or a collapse of entropy, by the sides that show it.

    At temperature 0 no sampler chooses: each token follows from the prompt and the numbers. A stall is then
    the engine's; a loop of one side on a prompt that both read is what the numbers made of it; one of both
    sides is the model's, or the prompt's, and nothing points at a cause.
    """
    shown = [f for f in findings if f.family is family and f.is_fault]
    sides = {f.side for f in shown}
    if not all(_is_greedy(pair, side) for side in sides):
        return "sampler"
    if all(f.code == "stall" for f in shown):
        return "engine"
    return "numeric" if len(sides) == 1 and not pair.prompt_differs else "unknown"


def _is_greedy(pair: ResponsePair, side: Side) -> bool:
    """Whether the side was asked at temperature 0."""
    return is_greedy(pair.candidate_body if side == "candidate" else pair.reference_body)


def _likeness(pair: ResponsePair, scores: Scores, settings: CompareSettings) -> Verdict:
    differences = list(_differences(pair, scores, settings))
    if _same_text(pair, scores) and not differences:
        if pair.reference.finish_reason == pair.candidate.finish_reason:
            return Verdict(VerdictKind.MATCH, ("same text, tool calls and finish reason",))
        return Verdict(
            VerdictKind.EQUIVALENT,
            (
                "same text and tool calls; the finish reason differs: "
                f"{pair.reference.finish_reason} and {pair.candidate.finish_reason}",
            ),
        )
    if differences:
        return Verdict(VerdictKind.DIVERGED, tuple(differences[:_MAX_REASONS]))
    missing = [
        f"{name} is unscored: {scores.unscored.get(name, 'not computed')}"
        for name in ("edit_similarity", "cosine_similarity")
        if name not in scores.values
    ]
    if missing:
        return Verdict(VerdictKind.UNSCORED, tuple(missing))
    cosine, edit = scores.values["cosine_similarity"], scores.values["edit_similarity"]
    return Verdict(
        VerdictKind.EQUIVALENT,
        (f"cosine {cosine:.3f} and edit similarity {edit:.3f}; numbers, keys, tool calls and refusal agree",),
    )


def _differences(pair: ResponsePair, scores: Scores, settings: CompareSettings) -> Iterable[str]:
    """What is known to differ, each in words."""
    if not same_tool_calls(pair.reference.tool_calls, pair.candidate.tool_calls):
        yield f"tool calls differ: {_call_names(pair.reference)} and {_call_names(pair.candidate)}"
    if _same_text(pair, scores):
        return
    for name, least in (
        ("cosine_similarity", settings.equivalent_cosine),
        ("edit_similarity", settings.equivalent_edit),
    ):
        value = scores.values.get(name)
        if value is not None and value < least:
            yield f"{name} {value:.3f} is under {least}"
    for name in _ZERO_WHERE_EQUAL:
        if scores.values.get(name, 0.0) > 0.0:
            yield f"{name} is {scores.values[name]:g}"
    agreement = scores.values.get("field_agreement")
    if agreement is not None and agreement < 1.0:
        yield f"field_agreement {agreement:.3f}: not every field of the JSON agrees"


def _same_text(pair: ResponsePair, scores: Scores) -> bool:
    """Whether the answers are the same text, up to Unicode form and outer white space."""
    return pair.reference.text == pair.candidate.text or scores.values.get("exact_match") == 1.0


def _call_names(observation: Observation) -> str:
    return ", ".join(call.name for call in observation.tool_calls) or "none"


def _sides(pair: ResponsePair) -> tuple[tuple[Side, Observation], tuple[Side, Observation]]:
    return ("reference", pair.reference), ("candidate", pair.candidate)


def _ordered(families: Iterable[Family]) -> tuple[Family, ...]:
    return tuple(sorted(families))
