"""How one delivered record ends when no pair comes of it (design, section 3)."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class SkipReason(StrEnum):
    """Not compared on purpose."""

    SAMPLED_OUT = "sampled_out"
    SHED = "shed"
    DUPLICATE = "duplicate"
    MODEL = "model"
    ENDPOINT = "endpoint"
    STATEFUL = "stateful"
    BATCH = "batch"
    MODALITY = "modality"
    OVERSIZE = "oversize"
    PURGED = "purged"


class FailReason(StrEnum):
    """Not compared, and it says nothing about the models."""

    ENDPOINT_AWAY = "endpoint_away"
    BUDGET = "budget"


class Skipped(msgspec.Struct, frozen=True):
    """The record was left out on purpose; `detail` says what was seen, in one line."""

    reason: SkipReason
    detail: str = ""


class Failed(msgspec.Struct, frozen=True):
    """The record could not be replayed; `detail` says why, in one line."""

    reason: FailReason
    detail: str = ""
