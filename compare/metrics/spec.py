"""What every metric means: name, unit, direction, range, when it is unscored, formula, source.

The names are those of `compare.result.Scores` and of the columns of `pairs`. `docs/metrics.md` is held
against this table by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal

Unit = Literal["nats", "ratio", "tokens", "count", "flag", "ms", "tokens/s"]
Direction = Literal["lower is better", "higher is better", "none"]

LOG_2 = log(2.0)

_LIST = ("all_impossible", "duplicate_tokens", "inconsistent_list", "not_finite", "not_normalised")
_SIDE = ("no_answer", "sampled", "constrained", "logprobs_filtered", "no_logprobs", *_LIST)
_WALK = ("no_answer", "sampled", "prompt_differs", "no_logprobs", "no_token_identity")
_PREFIX = (*_WALK, "constrained", "logprobs_filtered", *_LIST)
_UNFORCED = (
    "empty_answer",
    "no_answer",
    "no_token_ids",
    "prompt_differs",
    "prompt_too_long",
    "request_failed",
    "tools",
    "unsupported_engine",
)
_FORCED = (
    "not_asked",
    "constrained",
    "logprobs_filtered",
    *_UNFORCED,
    "no_logprobs",
    "no_token_identity",
    *_LIST,
)
_COSINE = ("no_answer", "embeddings_off", "empty_text", "too_long", "unknown_pieces")
_JSON = ("not_expected", "no_answer", "tool_call")

_JS = "tokens in both lists exact, the rest of each side one lump"
_JS_SOURCE = "Lin 1991; docs/metrics.md"
_CHANGE = "candidate's minus reference's probability of the reference's chosen token"
_CHANGE_SOURCE = "llama-perplexity, delta p"
_KL = "least value consistent with both top-k reports, by water-filling"
_KL_SOURCE = "docs/metrics.md; log-sum inequality (Cover and Thomas 2.7)"
_LOWER = "-sum p log p - floor(r/m) m log m - q log q, q = r - floor(r/m) m"
_UPPER = "-sum p log p - r log r + r log(V - k)"


_NATS_SOURCES = {"entropy": "concavity of -x log x", "divergence": "design, section 5"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One metric. `low` and `high` bound its values, None where there is no bound.

    `unscored` lists the reasons (`REASONS`) for which there may be no value.
    """

    name: str
    unit: Unit
    direction: Direction
    low: float | None
    high: float | None
    unscored: tuple[str, ...]
    formula: str
    source: str


def _nats(
    name: str,
    formula: str,
    unscored: tuple[str, ...],
    *,
    direction: Direction = "none",
    low: float | None = 0.0,
) -> MetricSpec:
    return MetricSpec(
        name=name,
        unit="nats",
        direction=direction,
        low=low,
        high=None,
        unscored=unscored,
        formula=formula,
        source=_NATS_SOURCES.get(name.split("_")[0], _KL_SOURCE),
    )


def _share(
    name: str,
    formula: str,
    unscored: tuple[str, ...],
    source: str,
    *,
    low: float = 0.0,
    high: float | None = 1.0,
) -> MetricSpec:
    return MetricSpec(
        name=name,
        unit="ratio",
        direction="higher is better" if high is not None else "none",
        low=low,
        high=high,
        unscored=unscored,
        formula=formula,
        source=source,
    )


def _count(
    name: str, formula: str, unscored: tuple[str, ...], source: str, unit: Unit = "count"
) -> MetricSpec:
    high = 1.0 if unit == "flag" else None
    is_good = unit == "tokens" or name == "exact_match" or "valid" in name
    return MetricSpec(
        name=name,
        unit=unit,
        direction="higher is better" if is_good else "lower is better",
        low=0.0,
        high=high,
        unscored=unscored,
        formula=formula,
        source=source,
    )


def _divergence(kind: str, where: str, unscored: tuple[str, ...]) -> tuple[MetricSpec, MetricSpec]:
    """Specify the two bounds of JS."""

    def bound(name: str, formula: str) -> MetricSpec:
        return MetricSpec(
            name=f"js_{kind}_{name}_mean_nats",
            unit="nats",
            direction="lower is better",
            low=0.0,
            high=LOG_2,
            unscored=unscored,
            formula=formula,
            source=_JS_SOURCE,
        )

    return (
        bound("lower", f"mean over {where} of the lower bound of the Jensen-Shannon divergence: {_JS}"),
        bound("upper", "the same of the upper bound: the two lumps share no token"),
    )


def _changes(
    kind: str, where: str, shares: tuple[str, ...], unscored: tuple[str, ...]
) -> tuple[MetricSpec, ...]:
    """Specify the change of the chosen token's probability: mean, root mean square, percentiles."""

    def change(name: str, formula: str, direction: Direction, low: float) -> MetricSpec:
        return MetricSpec(
            name=f"probability_change_{kind}_{name}",
            unit="ratio",
            direction=direction,
            low=low,
            high=1.0,
            unscored=unscored,
            formula=formula,
            source=_CHANGE_SOURCE,
        )

    return (
        change(
            "mean",
            f"mean over {where} of the {_CHANGE}; one that its list lacks counts with the nearest "
            "probability that the list allows",
            "higher is better",
            -1.0,
        ),
        change("rms", "its root mean square", "lower is better", 0.0),
        *(
            change(
                share,
                f"its {share[1:]}th percentile, linear between order statistics".replace("1th", "1st"),
                "higher is better",
                -1.0,
            )
            for share in shares
        ),
    )


def _entropies(side: str) -> tuple[MetricSpec, MetricSpec]:
    return (
        _nats(f"entropy_{side}_lower_nats", f"mean over its positions of {_LOWER}", _SIDE),
        _nats(
            f"entropy_{side}_upper_nats",
            f"mean over its positions of {_UPPER}",
            (*_SIDE, "no_vocabulary_size", "vocabulary_too_small"),
        ),
    )


def _structure(side: str) -> tuple[MetricSpec, MetricSpec]:
    return (
        _count(f"{side}_is_valid_json", "the text parses as JSON", _JSON, "RFC 8259", "flag"),
        _count(
            f"{side}_is_schema_valid",
            "it parses and is valid under the request's schema",
            (*_JSON, "no_schema", "bad_schema"),
            "JSON Schema, by jsonschema-rs",
            "flag",
        ),
    )


def _timings(side: str) -> tuple[MetricSpec, MetricSpec, MetricSpec]:
    def timing(
        name: str, unit: Unit, direction: Direction, formula: str, reason: tuple[str, ...]
    ) -> MetricSpec:
        return MetricSpec(
            name=f"{side}_{name}",
            unit=unit,
            direction=direction,
            low=0.0,
            high=None,
            unscored=("no_answer", "no_timings", *reason),
            formula=formula,
            source="the client's clock",
        )

    return (
        timing("total_ms", "ms", "lower is better", "from sending to the last byte", ()),
        timing(
            "first_token_ms", "ms", "lower is better", "from sending to the first token", ("not_streamed",)
        ),
        timing(
            "tokens_per_s",
            "tokens/s",
            "higher is better",
            "answer tokens / total seconds",
            ("no_token_count",),
        ),
    )


METRICS: tuple[MetricSpec, ...] = (
    _nats(
        "kl_prefix_mean_nats",
        f"mean over the common prefix of KL(reference, candidate): {_KL}",
        (*_PREFIX, "infinite"),
        direction="lower is better",
    ),
    _nats("kl_prefix_max_nats", "its maximum", (*_PREFIX, "infinite"), direction="lower is better"),
    *_divergence("prefix", "the common prefix", _PREFIX),
    _count(
        "prefix_tokens",
        "leading tokens that both sides chose alike",
        _WALK,
        "design, section 5",
        unit="tokens",
    ),
    _nats(
        "divergence_gap_nats",
        "the greater of both sides' gaps in log probability between the two tokens where the answers part",
        (*_WALK, "constrained", "logprobs_filtered", "no_divergence", "gap_unknown"),
    ),
    *_entropies("reference"),
    *_entropies("candidate"),
    _nats(
        "entropy_shift_prefix_nats",
        "mean over the common prefix of candidate minus reference, both lower bounds",
        _PREFIX,
        low=None,
    ),
    _share(
        "top1_agreement_prefix_ratio",
        "share of the common prefix's positions where both lists lead with one token",
        _PREFIX,
        "llama-perplexity, same top p",
    ),
    *_changes("prefix", "the common prefix", ("p5", "p50", "p95"), _PREFIX),
    _nats(
        "kl_forced_mean_nats",
        f"mean over the reference's own tokens of KL(reference, candidate): {_KL}",
        (*_FORCED, "infinite"),
        direction="lower is better",
    ),
    _nats(
        "kl_forced_p99_nats",
        "its 99th percentile, linear between order statistics",
        (*_FORCED, "infinite"),
        direction="lower is better",
    ),
    _nats("kl_forced_max_nats", "its maximum", (*_FORCED, "infinite"), direction="lower is better"),
    *_divergence("forced", "the reference's own tokens", _FORCED),
    _share(
        "top1_agreement_forced_ratio",
        "share of forced positions where both lists lead with one token",
        _FORCED,
        "llama-perplexity, same top p",
    ),
    *_changes("forced", "the reference's own tokens", ("p1", "p99"), _FORCED),
    _share(
        "perplexity_forced_ratio",
        "exp(mean(log p - log q)) over the forced tokens; a token outside the candidate's list counts with "
        "its last ranked probability, so the ratio is a lower bound",
        (*_FORCED, "infinite"),
        "llama-perplexity, PPL(Q)/PPL(base)",
        high=None,
    ),
    _count(
        "exact_match", "the texts are equal in NFC without outer white space", ("no_answer",), "-", "flag"
    ),
    _share(
        "edit_similarity",
        "1 - Levenshtein distance / length of the longer; a lower bound over 20,000 differing characters",
        ("no_answer",),
        "Levenshtein 1966, by rapidfuzz",
    ),
    _share(
        "cosine_similarity",
        "cosine of the piece-weighted means over windows of 200 word pieces",
        _COSINE,
        "Reimers and Gurevych 2019, by sentence-transformers",
        low=-1.0,
    ),
    _share(
        "cosine_min_similarity",
        "for each window the best cosine in the other text; the least of them",
        _COSINE,
        "Reimers and Gurevych 2019, by sentence-transformers",
        low=-1.0,
    ),
    _count("numbers_differ", "numbers to change, add or remove, by value", ("no_answer",), "-"),
    _count("keys_differ", "named keys to change, add or remove", ("no_answer",), "-"),
    _count("refusal_flip", "one side opens with a refusal, the other does not", ("no_answer",), "-", "flag"),
    _share(
        "length_ratio",
        "characters of the candidate's text / of the reference's",
        ("no_answer", "empty_text"),
        "-",
        high=None,
    ),
    _share(
        "field_agreement",
        "equal leaves / JSON paths that either value has; 0 where only the reference is JSON",
        (*_JSON, "reference_not_json"),
        "-",
    ),
    *_structure("reference"),
    *_structure("candidate"),
    _share(
        "tool_name_agreement",
        "tool calls of the same name at the same place / calls of the side that makes more",
        ("no_answer", "no_tool_call"),
        "-",
    ),
    _share(
        "tool_arguments_agreement",
        "mean over the reference's calls of equal leaves / JSON paths that either call's arguments have; 0 "
        "for a call that the candidate does not make by that name",
        ("no_answer", "no_tool_call", "reference_not_json"),
        "-",
    ),
    *(
        _share(
            f"{side}_values_in_prompt",
            "texts and numbers of its JSON that stand in the prompt (texts in NFKC, case folded, single "
            "spaces; numbers by value) / all of them",
            (*_JSON, "not_json", "no_values", "too_long"),
            "-",
        )
        for side in ("reference", "candidate")
    ),
    *_timings("reference"),
    *_timings("candidate"),
    _share("latency_ratio", "candidate's total / reference's", ("no_answer", "no_timings"), "-", high=None),
)
"""Every metric, in the order of the columns."""
