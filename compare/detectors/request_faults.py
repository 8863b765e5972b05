"""Family `request`: the request itself invites the failure. Never a fault of the model.

It is said once a pair, on the candidate, of the request as the client sent it.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable
from typing import Any

from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

SEED = "seed_"
"""Codes of what the input shares with known failures begin so: a hint, not a cause."""
_FLAGS = ("top_p", "top_k", "min_p", "typical_p", "best_of", "n")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_SCANNED = 65_536
_WINDOW = 1024


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `logit_bias_range`, `mask_leaves_nothing`, `greedy_with_sampling`, `stop_*`, `seed_*`, ..."""
    if subject.side != "candidate":
        return
    body = subject.client_body or subject.body
    yield from _bias(subject, body.get("logit_bias"), settings)
    yield from _masks(subject, body)
    yield from _temperature(subject, body, settings)
    yield from _stops(subject, body)
    yield from _seeds(subject, settings)


def _bias(subject: Subject, bias: object, settings: DetectorSettings) -> Iterable[Finding]:
    """OpenAI documents a range of -100 to 100; llama.cpp also takes a list of [token, bias] pairs."""
    if isinstance(bias, list):
        pairs = [entry for entry in bias if isinstance(entry, list) and len(entry) == 2]
        values = [value for _, value in pairs]
        entries = len(bias)
    elif isinstance(bias, dict):
        values, entries = list(bias.values()), len(bias)
    else:
        return
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    worst = max((abs(v) if math.isfinite(v) else math.inf for v in numbers), default=0.0)
    if worst > settings.bias_limit:
        yield _finding(
            subject,
            "logit_bias_range",
            f"logit_bias of {worst:g} is beyond {settings.bias_limit:g}",
            worst,
            settings.bias_limit,
        )
    if entries > settings.bias_max_entries:
        yield _finding(
            subject,
            "logit_bias_entries",
            f"logit_bias names {entries} tokens",
            float(entries),
            float(settings.bias_max_entries),
        )
    if subject.vocabulary_size and sum(v <= -settings.bias_limit for v in numbers) >= subject.vocabulary_size:
        yield _finding(subject, "mask_leaves_nothing", "logit_bias forbids the whole vocabulary")


def _masks(subject: Subject, body: dict[str, Any]) -> Iterable[Finding]:
    """Find masks that allow no token."""
    outputs = body.get("structured_outputs")
    nested = outputs if isinstance(outputs, dict) else {}
    empty = [
        name
        for name, value in (
            ("allowed_token_ids", body.get("allowed_token_ids")),
            ("guided_choice", body.get("guided_choice")),
            ("structured_outputs.choice", nested.get("choice")),
        )
        if value == []
    ]
    expected = subject.expected
    if expected is not None and expected.schema is not None and _is_impossible(expected.schema):
        empty.append("the schema")
    for name, least, most in (("top_p", 0.0, None), ("min_p", None, 1.0), ("typical_p", 0.0, None)):
        value = body.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if (least is not None and value <= least) or (most is not None and value > most):
            empty.append(f"{name}={value:g}")
    for name in empty:
        yield _finding(subject, "mask_leaves_nothing", f"{name} leaves no token to choose from")


def _is_impossible(schema: dict[str, Any]) -> bool:
    if schema.get("enum") == [] or schema.get("anyOf") == [] or schema.get("oneOf") == []:
        return True
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(required, list):
        return False
    if isinstance(properties, dict):
        for name in required:
            inner = properties.get(name) if isinstance(name, str) else None
            if inner is False or (isinstance(inner, dict) and inner.get("enum") == []):
                return True
        if schema.get("additionalProperties") is False:
            return any(isinstance(name, str) and name not in properties for name in required)
    return False


def _temperature(subject: Subject, body: dict[str, Any], settings: DetectorSettings) -> Iterable[Finding]:
    temperature = body.get("temperature")
    if not isinstance(temperature, int | float) or isinstance(temperature, bool):
        return
    if 0.0 < temperature < settings.least_temperature:
        yield _finding(
            subject,
            "tiny_temperature",
            f"temperature {temperature:g} divides the logits out of range; 0 means greedy",
            float(temperature),
            settings.least_temperature,
        )
    flags = [name for name in _FLAGS if _is_on(name, body.get(name))]
    if body.get("do_sample") is True:
        flags.append("do_sample")
    if temperature == 0 and flags:
        yield _finding(
            subject,
            "greedy_with_sampling",
            f"temperature 0 together with {', '.join(flags)}: engines differ here",
        )


def _is_on(name: str, value: object) -> bool:
    """Whether a sampling flag asks for something."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if name in ("top_p", "typical_p"):
        return 0.0 < value < 1.0
    return value > 0 if name == "min_p" else value > 1


def _stops(subject: Subject, body: dict[str, Any]) -> Iterable[Finding]:
    """Find stop strings that end the answer at once, inside its structure, or never within the limit."""
    stop = body.get("stop")
    strings = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    strings = [string for string in strings if isinstance(string, str)]
    wants_json = subject.expected is not None and subject.expected.kind is not None
    limit = subject.token_limit
    for string in strings:
        if not string.strip(" "):
            yield _finding(
                subject, "stop_at_once", f"the stop string {string!r} ends the answer at its first word"
            )
        elif wants_json and (string.strip() in ("}", "{", '"', ",", ":", "]", "[") or string == "\n"):
            yield _finding(
                subject, "stop_in_structure", f"the stop string {string!r} is a part of the JSON asked for"
            )
        elif limit is not None and len(string) > 8 * limit:
            yield _finding(
                subject,
                "stop_out_of_reach",
                f"the stop string {shorten(string)} is longer than {limit} tokens can spell",
                float(len(string)),
                8.0 * limit,
            )
    least = body.get("min_tokens")
    if isinstance(least, int) and not isinstance(least, bool):
        if limit is not None and least > limit:
            yield _finding(
                subject,
                "min_over_max",
                f"min_tokens {least} is over the limit of {limit}",
                float(least),
                float(limit),
            )
        elif least > 0 and strings:
            yield _finding(
                subject, "stop_held_back", f"stop strings are held back for {least} tokens (min_tokens)"
            )
    if body.get("ignore_eos") is True and limit is None:
        yield _finding(subject, "endless", "ignore_eos without a token limit never ends")


def _seeds(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Find in the input what requests that failed in the field have in common."""
    prompt = subject.prompt[:_MAX_SCANNED]
    if not prompt.isascii():
        digits = settings.seed_hex_digits
        number = rf"0x[0-9a-fA-F]{{{digits},}}"
        bare = rf"(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{{{2 * digits},}}"
        pattern = rf"[\u3400-\u9fff][:\uff1a=\s]?(?:{number}|{bare})"
        if match := re.search(pattern, prompt):
            yield _finding(
                subject,
                SEED + "hex_after_han",
                f"Chinese is followed at once by hex: {shorten(match.group())}",
            )
    if not prompt.isprintable() and (control := _CONTROL.search(prompt)):
        yield _finding(
            subject, SEED + "control_character", f"a control character is in the prompt: {control.group()!r}"
        )
    # A window that shrinks to a few bytes repeats one short unit dozens of times.
    for start in range(0, max(len(prompt) - _WINDOW // 2, 0), _WINDOW):
        window = prompt[start : start + _WINDOW].encode("utf-8", "surrogatepass")
        times = len(window) / max(len(zlib.compress(window, 1)) - 8, 1)
        if times > settings.seed_min_repeats:
            yield _finding(
                subject,
                SEED + "repetition",
                f"the prompt repeats itself: {len(window)} bytes shrink {times:.0f} times",
                times,
                float(settings.seed_min_repeats),
            )
            return


def _finding(
    subject: Subject, code: str, message: str, measured: float | None = None, threshold: float | None = None
) -> Finding:
    return subject.finding(
        Family.REQUEST,
        code,
        message,
        is_fault=False,
        measured=measured if measured is not None and math.isfinite(measured) else None,
        threshold=threshold,
    )
