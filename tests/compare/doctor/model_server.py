"""A small made-up model behind the OpenAI protocol, with the faults that the doctor must see."""

from __future__ import annotations

import hashlib
import json
import math
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VOCABULARY = [f"word{number}" for number in range(40)]


class MadeUpModel:
    """The next token's logits are a hash of what the model reads; faults are attributes.

    `scaled`: logprobs are those after temperature. `masked`: those after bias and JSON mask. `top` caps the
    list. `context` is how many words are read; with `cuts` the front of a longer prompt is dropped in
    silence, else it is refused. Longer prompts than `slow_from` words take a second. `salt` stands for the
    weights, `template_words` for the chat template.
    """

    def __init__(self, **faults: Any) -> None:
        self.scaled = False
        self.masked = False
        self.certain_when_greedy = False
        self.top = 40
        self.context = 100_000
        self.cuts = False
        self.slow_from = 100_000
        self.template_words = 3
        self.has_usage = True
        self.streams = True
        self.has_logprobs = True
        self.is_random = False
        self.models = ["m"]
        self.status = 200
        for name, value in faults.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and answer to a chat request."""
        if self.status != 200:
            return self.status, {"error": {"message": "the GPU fell off"}}
        words = " ".join(message["content"] for message in body["messages"]).split()
        if len(words) > self.context and not self.cuts:
            message = f"maximum context length is {self.context} tokens, you asked {len(words)}"
            return 400, {"error": {"message": message, "code": "context_length_exceeded"}}
        if len(words) > self.slow_from:
            time.sleep(1.0)
        read = words[-self.context :]
        seed = hashlib.sha256(" ".join(read).encode()).hexdigest()
        source = random.Random(None if self.is_random else seed)
        content = []
        for _ in range(body["max_tokens"]):
            logits = [source.gauss(0, 3) for _ in VOCABULARY]
            content.append(self._entry(logits, body))
        prompt_tokens = len(read) + self.template_words
        answer: dict[str, Any] = {
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "".join(one["token"] for one in content)},
                    "finish_reason": "length",
                    **({"logprobs": {"content": content}} if self.has_logprobs else {}),
                }
            ],
        }
        if self.has_usage:
            answer["usage"] = {"prompt_tokens": prompt_tokens, "completion_tokens": len(content)}
        return 200, answer

    def _entry(self, logits: list[float], body: dict[str, Any]) -> dict[str, Any]:
        temperature = body.get("temperature", 1)
        shown = list(logits)
        if self.masked:
            for token, bias in (body.get("logit_bias") or {}).items():
                shown[int(token)] += bias
            if body.get("response_format"):
                shown = [value if number % 7 == 0 else -1e9 for number, value in enumerate(shown)]
        if self.scaled and temperature:
            shown = [value / temperature for value in shown]
        if self.certain_when_greedy and not temperature:
            best = max(shown)
            shown = [0.0 if value == best else -1e9 for value in shown]
        most = max(shown)
        total = most + math.log(sum(math.exp(value - most) for value in shown))
        ranked = sorted(range(len(shown)), key=lambda token: -shown[token])
        entries = [
            {"token": VOCABULARY[token], "logprob": shown[token] - total, "id": token, "bytes": None}
            for token in ranked[: min(self.top, body["top_logprobs"])]
        ]
        return {**entries[0], "top_logprobs": entries}


@contextmanager
def serving(model: MadeUpModel) -> Iterator[str]:
    """Serve it; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self._send(200, {"data": [{"id": name} for name in model.models]})
            else:
                self._send(404, {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions":
                self._send(404, {})
                return
            if body.get("stream") and not model.streams:
                self._send(400, {"error": {"message": "logprobs are not supported with stream"}})
                return
            status, answer = model.answer(body)
            if status != 200 or not body.get("stream"):
                self._send(status, answer)
                return
            choice = answer["choices"][0]
            choice["delta"] = choice.pop("message")
            usage = {**answer, "choices": []} if "usage" in answer else None
            chunks = [{key: value for key, value in answer.items() if key != "usage"}]
            chunks += [usage] if usage else []
            text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
            self._raw(200, "text/event-stream", text.encode())

        def _send(self, status: int, value: object) -> None:
            self._raw(status, "application/json", json.dumps(value).encode())

        def _raw(self, status: int, content_type: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
