"""LiteLLM's StandardLoggingPayload, as its Kafka and generic callbacks write it.

https://docs.litellm.ai/docs/proxy/logging_spec names the fields. The request is rebuilt from
`messages` and `model_parameters`; the model is `model_group`, which is the name that the client
asked the proxy for.
"""

from __future__ import annotations

import re
from typing import Any

from ingest.decoded import Decoded, Fields, as_tag, short
from ingest.errors import DeadLetterError
from ingest.json_reader import read_json
from ingest.records import ProductionAnswer, ServedBy

SOURCE_FORMAT = "litellm"

_REDACTED = "redacted-by-litellm"
_PATHS = {
    "completion": "/v1/chat/completions",
    "text_completion": "/v1/completions",
    "embedding": "/v1/embeddings",
    "responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}


def is_litellm(tree: dict[str, Any]) -> bool:
    """Whether an object is shaped like a StandardLoggingPayload."""
    return "startTime" in tree and ("call_type" in tree or "model_parameters" in tree)


def decode_litellm(tree: dict[str, Any]) -> Decoded:
    """Rebuild the request. Raises DeadLetterError `missing_field`, `wrong_type` or `redacted`."""
    fields = Fields(tree)
    request_id = fields.required_text("id")
    call_type = fields.text("call_type") or "completion"
    endpoint = _PATHS.get(call_type.removeprefix("a"), f"litellm:{call_type}")
    if call_type in _PATHS:
        # `anthropic_messages` begins with an a of its own.
        endpoint = _PATHS[call_type]
    model = fields.text("model_group") or fields.text("model")
    parameters = fields.table("model_parameters")
    body: dict[str, Any] = dict(parameters.tree) if parameters is not None else {}
    if model is not None:
        body["model"] = model
    if endpoint in (_PATHS["completion"], _PATHS["text_completion"]):
        _put_prompt(body, fields, is_chat=endpoint == _PATHS["completion"])
    metadata = fields.table("metadata")
    team = None
    if metadata is not None:
        team = metadata.text("user_api_key_team_alias") or metadata.text("user_api_key_team_id")
    return Decoded(
        request_id=request_id,
        body=body,
        source_format=SOURCE_FORMAT,
        sent_at=fields.unix_time("startTime"),
        tenant=team or "",
        endpoint=endpoint,
        production=_production(fields),
        served_by=ServedBy(model=fields.text("model")),
        tags=_tags(fields),
        dropped=tuple(fields.dropped),
    )


def _put_prompt(body: dict[str, Any], fields: Fields, *, is_chat: bool) -> None:
    messages = fields.tree.get("messages")
    if isinstance(messages, str) and messages.lstrip().startswith(("[", "{")):
        messages = _parsed(messages)
    if isinstance(messages, dict) and "messages" in messages:
        messages = messages["messages"]
    if messages is None:
        raise DeadLetterError("missing_field", "messages is missing; there is nothing to replay")
    if _is_redacted(messages):
        raise DeadLetterError(
            "redacted", "messages were redacted by LiteLLM; switch off turn_off_message_logging there"
        )
    if is_chat:
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if not isinstance(messages, list):
            raise fields.wrong("messages", "an array, a string, or an object with messages")
        body["messages"] = messages
        return
    body["prompt"] = _prompt(messages, fields)


def _prompt(messages: Any, fields: Fields) -> Any:
    """The prompt of a legacy completion, which LiteLLM logs as one user message or as it is."""
    if isinstance(messages, str):
        return messages
    if isinstance(messages, list) and messages:
        first = messages[0]
        if len(messages) == 1 and isinstance(first, dict) and isinstance(first.get("content"), str | list):
            return first["content"]
        if not any(isinstance(item, dict) for item in messages):
            return messages
    raise fields.wrong("messages", f"a prompt; it was {short(messages)}")


def _parsed(text: str) -> Any:
    """JSON that was logged as a string; a prompt that merely looks like JSON stays a string."""
    try:
        value = read_json(text.encode("utf-8"), "messages").value
    except DeadLetterError:
        return text
    is_messages = isinstance(value, list) and bool(value) and all(_is_message(item) for item in value)
    return value if is_messages or (isinstance(value, dict) and "messages" in value) else text


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and "role" in item


def _is_redacted(messages: Any) -> bool:
    if isinstance(messages, list):
        return any(_is_message(item) and item.get("content") == _REDACTED for item in messages)
    return isinstance(messages, str) and messages == _REDACTED


def _production(fields: Fields) -> ProductionAnswer | None:
    body = fields.tree.get("response")
    status = fields.text("status")
    error = fields.table("error_information")
    code = error.text("error_code") if error is not None else None
    start, end = fields.unix_time("startTime"), fields.unix_time("endTime")
    latency = (end - start).total_seconds() * 1000 if start is not None and end is not None else None
    if body is None and status is None and latency is None:
        return None
    number = int(code) if code is not None and re.fullmatch("[1-5][0-9]{2}", code) else None
    return ProductionAnswer(
        status=200 if status == "success" else number,
        content_type=None,
        body=body,
        latency_ms=latency if latency is not None and latency >= 0 else None,
    )


def _tags(fields: Fields) -> dict[str, str]:
    tags = {}
    for name in ("trace_id", "model_id", "api_base", "end_user"):
        value = fields.text(name)
        if value:
            tags[f"litellm.{name}"] = value
    labels = fields.tree.get("request_tags")
    if isinstance(labels, list) and labels:
        tags["litellm.request_tags"] = ",".join(filter(None, map(as_tag, labels)))
    return tags
