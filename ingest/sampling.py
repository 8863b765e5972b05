"""Which requests are replayed: decided by the request alone, so the same on every host and run."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import msgspec

from ingest.outcome import Skipped, SkipReason
from ingest.records import MirroredRequest
from ingest.replay_plan import share_of
from ingest.settings import SamplingRule, SamplingSettings

KEPT_TAG = "gnomon.kept"
"""Tag of a request that an always-keep rule kept: it stands for itself, not for a share of the traffic."""
FRACTION_TAG = "gnomon.sample_fraction"
"""Tag of a request that a rule chose: it stands for 1 / fraction requests."""

_CHARACTERS_A_TOKEN = 4


class Sampler:
    """The always-keep rules, then the first rule that matches, then the experiment's own fraction."""

    def __init__(self, settings: SamplingSettings, *, fraction: float, seed: int) -> None:
        """`fraction` is for requests that no rule matches; `seed` the experiment's."""
        self._settings = settings
        self._fraction = fraction
        self._seed = seed

    def sample(self, mirrored: MirroredRequest) -> MirroredRequest | Skipped:
        """Return the request, tagged if a rule chose it, or the skip with the name of the rule."""
        kept = self._kept_by(mirrored)
        if kept is not None:
            return _tagged(mirrored, KEPT_TAG, kept)
        for number, rule in enumerate(self._settings.rules, 1):
            if _matches(rule.tenant, mirrored.tenant) and _matches(rule.route, mirrored.route):
                if is_sampled(mirrored.request_id, rule.fraction, self._seed):
                    return _tagged(mirrored, FRACTION_TAG, f"{rule.fraction:g}")
                return Skipped(SkipReason.SAMPLED_OUT, _named(number, rule))
        if is_sampled(mirrored.request_id, self._fraction, self._seed):
            return mirrored
        return Skipped(SkipReason.SAMPLED_OUT, f"experiment.sample_fraction = {self._fraction:g}")

    def _kept_by(self, mirrored: MirroredRequest) -> str | None:
        settings, production = self._settings, mirrored.production
        if settings.keep_errors and production is not None and (production.status or 0) >= 400:
            return "keep_errors"
        least = settings.keep_prompt_characters
        if least is not None and prompt_characters(mirrored.body) >= least:
            return "keep_prompt_characters"
        for tag in settings.keep_tags:
            name, has_value, value = tag.partition("=")
            found = mirrored.tags.get(name)
            if found is not None and (not has_value or found == value):
                return f"keep_tags {tag}"
        return None


def is_sampled(request_id: str, fraction: float, seed: int) -> bool:
    """Whether a request belongs to the sample of `fraction`; a larger sample holds every smaller one."""
    return share_of(request_id, purpose="sample", seed=seed) < fraction


def prompt_characters(body: dict[str, Any]) -> int:
    """Count the characters of a request's messages or prompt; a token id counts as four."""
    messages, prompt = body.get("messages"), body.get("prompt")
    total = 0
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [content]
        texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
        total += sum(len(text) for text in texts if isinstance(text, str))
    for part in prompt if isinstance(prompt, list) else [prompt]:
        total += len(part) if isinstance(part, str) else _CHARACTERS_A_TOKEN * isinstance(part, int)
    return total


def _matches(pattern: str | None, name: str) -> bool:
    return pattern is None or fnmatchcase(name, pattern)


def _named(number: int, rule: SamplingRule) -> str:
    conditions = [("tenant", rule.tenant), ("route", rule.route)]
    said = "".join(f"{name} = {pattern}, " for name, pattern in conditions if pattern is not None)
    return f"sampling.rules {number} ({said}fraction = {rule.fraction:g})"


def _tagged(mirrored: MirroredRequest, name: str, value: str) -> MirroredRequest:
    return msgspec.structs.replace(mirrored, tags=mirrored.tags | {name: value})
