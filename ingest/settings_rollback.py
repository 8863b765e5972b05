"""When a rollback is called for: the section `[rollback]` (docs/rollback.md)."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from ingest.settings_types import Name, NonNegative, Positive, PositiveInt

MetricName = Annotated[str, Meta(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
Reading = Literal["value", "rate", "increase", "changes", "age"]
Comparison = Literal[">", ">=", "<", "<=", "==", "!="]
WINDOWED: tuple[Reading, ...] = ("rate", "increase", "changes")
"""Readings over `over_s`; the others look at one moment."""


class RollbackPage(Struct, frozen=True, forbid_unknown_fields=True):
    """One Prometheus page that tells of a candidate: its engine's own, or its GPUs' (DCGM exporter).

    The endpoint's headers, key and TLS settings are used where the page has the endpoint's own scheme, host
    and port, and nowhere else.
    """

    endpoint: Name
    url: Annotated[str, Meta(pattern=r"^https?://\S+$")]


class RollbackRule(Struct, frozen=True, forbid_unknown_fields=True):
    """One sign of condition C: any series that fits makes the rule fire.

    `metrics`: names, of which a page has one or none. `labels`: values that a series must have, exactly.
    `of`: the `value`; over the last `over_s` seconds its `rate` a second, its `increase` or how often it
    `changes`; or `age`, the seconds since the Unix time that it holds. It fires where that compares with
    `threshold` as `when` says, for `for_s` seconds without a break.
    """

    name: Name
    metrics: Annotated[list[MetricName], Meta(min_length=1)]
    threshold: float
    when: Comparison = ">"
    of: Reading = "value"
    over_s: Positive = 300.0
    for_s: NonNegative = 0.0
    labels: dict[str, str] = {}
    endpoints: list[Name] = []
    """Candidates that it is for; empty: all."""


class RollbackSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions A, B and C, and what is done when (A and B) or C holds."""

    enabled: bool = True
    interval_s: Annotated[float, Meta(ge=5.0, le=3600.0)] = 60.0
    hold_evaluations: PositiveInt = 3
    """A rollback is called for after so many evaluations in a row that say so."""
    clear_evaluations: PositiveInt = 10
    """The call ends after so many in a row that do not."""
    golden_set: Name | None = None
    """The set whose runs condition A looks at; None: any set that is run against the candidate."""
    golden_runs: PositiveInt = 2
    """So many in a row under `golden.fail_mean_score` make condition A."""
    golden_max_age_s: Positive = 10_800.0
    """A newest run that is older says nothing of now."""
    faulty_share: Annotated[float, Meta(ge=0.0, lt=1.0)] = 0.05
    faulty_window_s: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 600.0
    faulty_confidence: Annotated[float, Meta(gt=0.5, lt=1.0)] = 0.95
    """How sure it must be that the true share is over `faulty_share` (exact, one-sided)."""
    faulty_min_pairs: PositiveInt = 20
    pages: list[RollbackPage] = []
    rules: list[RollbackRule] = []
    """Added to the shipped ones; one of the same name takes the place of a shipped one."""
    without_rules: list[Name] = []
    """Shipped rules that are left out."""
    health_path: Annotated[str, Meta(pattern=r"^(/\S*)?$")] = "/health"
    """Asked of every candidate; empty asks for nothing."""
    page_timeout_s: Annotated[float, Meta(gt=0.0, le=60.0)] = 5.0
    max_page_bytes: Annotated[int, Meta(ge=1, le=64 * 1024 * 1024)] = 8 * 1024 * 1024
    sinks: list[Name] | None = None
    """Sinks of `[notify]` that are told of a call; None: all."""
    approve_command: list[str] = []
    """Program and arguments that `gnomon rollback approve` runs, with JSON on its standard input."""
    approve_timeout_s: Annotated[float, Meta(gt=0.0, le=3600.0)] = 60.0


HEALTH_METRIC = "gnomon_health_up"
"""1 where the health path answers 2xx; 0 where it answers otherwise, refuses, or does not answer in time."""

START_METRIC = "gnomon_process_start"
"""What llama.cpp tells in the header `Process-Start-Time-Unix`: another number for each process, of no
calendar."""

SHIPPED_RULES: tuple[RollbackRule, ...] = (
    RollbackRule("health-failed", [HEALTH_METRIC], threshold=1.0, when="<", for_s=120.0),
    RollbackRule(
        "restarts",
        ["process_start_time_seconds", START_METRIC],
        threshold=1.0,
        of="changes",
        over_s=3600.0,
    ),
    RollbackRule("gpu-xid", ["DCGM_FI_DEV_XID_ERRORS"], threshold=0.0, of="increase", over_s=1800.0),
    RollbackRule(
        "kv-cache-full",
        ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "llamacpp:kv_cache_usage_ratio"],
        threshold=0.98,
        when=">=",
        for_s=600.0,
    ),
    RollbackRule(
        "preemptions",
        ["vllm:num_preemptions_total", "vllm:num_preemptions"],
        threshold=1.0,
        of="rate",
        over_s=300.0,
        for_s=300.0,
    ),
)
"""What is watched where a page has it; why each is as it is stands in docs/rollback.md."""


def rules_of(settings: RollbackSettings) -> list[RollbackRule]:
    """The shipped rules that hold, then those of the settings."""
    replaced = {rule.name for rule in settings.rules} | set(settings.without_rules)
    return [*(rule for rule in SHIPPED_RULES if rule.name not in replaced), *settings.rules]


def rollback_problem(settings: RollbackSettings, candidates: list[str]) -> tuple[tuple[str, ...], str] | None:
    """(key, what is wrong with it) of values that do not go together; None if they do."""
    names = [rule.name for rule in settings.rules]
    for number, rule in enumerate(settings.rules, 1):
        where = ("rules", str(number))
        if names.count(rule.name) > 1:
            return (*where, "name"), f"is {rule.name!r}, which two rules have"
        if rule.of in WINDOWED and rule.over_s < 2 * settings.interval_s:
            least = 2 * settings.interval_s
            return (*where, "over_s"), f"is {rule.over_s:g}; two looks need {least:g} (2 interval_s)"
        for endpoint in rule.endpoints:
            if endpoint not in candidates:
                return (*where, "endpoints"), _no_candidate(endpoint, candidates)
    for number, page in enumerate(settings.pages, 1):
        where = ("pages", str(number))
        if page.endpoint not in candidates:
            return (*where, "endpoint"), _no_candidate(page.endpoint, candidates)
        try:
            parts = urlsplit(page.url)
            _ = parts.port
        except ValueError as error:
            return (*where, "url"), f"is no URL: {error}"
        if parts.username is not None or parts.password is not None:
            return (*where, "url"), "holds a user or password; secrets come from the environment only"
    shipped = [rule.name for rule in SHIPPED_RULES]
    for name in settings.without_rules:
        if name not in shipped:
            return ("without_rules",), f"names {name!r}, which is not shipped; shipped: {', '.join(shipped)}"
    return None


def _no_candidate(endpoint: str, candidates: list[str]) -> str:
    return f"names {endpoint!r}; only a candidate is rolled back: {', '.join(candidates)}"
