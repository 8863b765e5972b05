"""Faults in the earlier assistant turns of a request: a model that is shown a loop goes on with it.

Such a pair says little of either model: it is tagged `history_faulty` and stays out of the rates.
"""

from __future__ import annotations

from compare.detectors import garbage, repetition, utf8
from compare.detectors.facts import messages_of
from compare.detectors.subject import Subject
from ingest.observation import Observation
from ingest.settings import DetectorSettings

HISTORY_FAULTY = "history_faulty"
"""The tag of a pair whose request already holds a faulty answer."""


def is_history_faulty(body: dict[str, object], settings: DetectorSettings) -> bool:
    """Whether an earlier assistant message loops, or holds garbage or broken characters.

    Each is judged with the messages before it as its request, as if it had ended by itself, unless it
    is long: a loop that its limit cut looks unfinished. Linear in the length of the history.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        text = "\n".join(text for _, text in messages_of({"messages": [message]}))
        if text and _is_faulty(text, {"messages": messages[:index]}, settings):
            return True
    return False


def _is_faulty(text: str, request: dict[str, object], settings: DetectorSettings) -> bool:
    # Nothing says how it ended: only what is long enough is judged by the few copies of a cut loop.
    finish = "stop" if len(text) < 4 * settings.closed_loop_min_characters else None
    subject = Subject(Observation(text=text, finish_reason=finish), "candidate", request)
    return any(
        finding.is_fault
        for detector in (repetition.detect, garbage.detect, utf8.detect)
        for finding in detector(subject, settings)
    )
