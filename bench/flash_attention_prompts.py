"""Requests for `bench.flash_attention`: the demo's workload and prompts of many kinds made from parts."""

from __future__ import annotations

from typing import Any

from compare.demo.workload import workload

_SUBJECTS = (
    "a bicycle pump",
    "the harbour of Bergen",
    "compound interest",
    "sourdough bread",
    "a lighthouse keeper",
    "the moons of Jupiter",
    "unit tests",
    "a lost umbrella",
    "tide tables",
    "the French Revolution",
    "a chess club",
    "photosynthesis",
    "an invoice that was paid twice",
    "the Danube",
    "a broken elevator",
    "winter tyres",
)
_TASKS = (
    "Explain {} in three sentences.",
    "Write a four-line poem about {}.",
    "List twelve things to know about {}, numbered.",
    "Give a Markdown table with five rows about {}.",
    'Answer with one JSON object with the keys "title" and "facts" about {}. No other text.',
    "Write a short Python function that has to do with {} and end it with a usage example.",
    "Ask me five questions about {} and answer each yourself.",
    "Write a formal letter of complaint about {}.",
    "Continue this log of an engineer who studies {}:\n10:01 started\n10:02 first reading 0x3f\n10:03",
    "Escribe un párrafo sobre {}.",
)


def requests(max_tokens: int) -> list[tuple[str, dict[str, Any]]]:
    """Every request as (path, body), answers of at most `max_tokens` tokens; the order is fixed."""
    found = []
    for item in workload():
        limit = min(max_tokens, item.request.get("max_tokens") or max_tokens)
        found.append((item.endpoint, {**item.request, "max_tokens": limit}))
    for task in _TASKS:
        for subject in _SUBJECTS:
            message = {"role": "user", "content": task.format(subject)}
            found.append(("/v1/chat/completions", {"messages": [message], "max_tokens": max_tokens}))
    return found
