"""What a record that could not be decoded looks like: a word for the person who looks at dead letters.

A guess and no more. It goes by the first bytes and by the names of keys, so that it works on JSON that is
broken or cut.
"""

from __future__ import annotations

import re

from ingest.decode_http import BARE_FORMAT, GOREPLAY_FORMAT, is_bare, is_goreplay
from ingest.decode_litellm import SOURCE_FORMAT as LITELLM_FORMAT
from ingest.decode_litellm import is_litellm
from ingest.decode_native import SCHEMA

_HEAD_BYTES = 64 * 1024

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"Obj\x01", "avro"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    # A serializer of Confluent's schema registry: a zero byte and four of the schema's number.
    (b"\x00", "confluent"),
)
_KEY = re.compile(rb'"([A-Za-z_]{1,64})"\s*:')
_HTTP = re.compile(rb"(?:HTTP/\d|(?:GET|POST|PUT|PATCH|DELETE|OPTIONS) \S+ HTTP/\d)")
_GOREPLAY_TEXT = re.compile(rb"[123] [0-9a-f]{24,40} \d+")


def guess_shape(value: bytes | None) -> str:
    """Return what `value` looks like.

    `gnomon.mirror/1`, `litellm`, `goreplay`, `openai` as in the column `source_format`, whole or broken;
    `json` for other JSON; `gzip`, `zstd`, `lz4`, `avro`, `confluent`, `utf-16`, `http`, `text`, `binary`;
    `nothing` for null and blanks. Never raises.
    """
    if value is None or not value.strip():
        return "nothing"
    head = value[:_HEAD_BYTES]
    for magic, word in _MAGIC:
        if head.startswith(magic):
            return word
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] in (b"{", b"["):
        return _of_keys(dict.fromkeys(key.decode("ascii") for key in _KEY.findall(start)))
    if _HTTP.match(start):
        return "http"
    if _GOREPLAY_TEXT.match(start):
        return GOREPLAY_FORMAT
    return "binary" if _is_binary(head) else "text"


def _of_keys(keys: dict[str, None]) -> str:
    if "schema" in keys and ("request_id" in keys or "request" in keys):
        return SCHEMA
    if is_litellm(keys):
        return LITELLM_FORMAT
    if is_goreplay(keys):
        return GOREPLAY_FORMAT
    return BARE_FORMAT if is_bare(keys) else "json"


def _is_binary(head: bytes) -> bool:
    """Control characters that no text holds, or more than a few bytes that are no UTF-8."""
    controls = sum(byte < 32 and byte not in b"\t\n\r\x1b" for byte in head)
    wrong = head.decode("utf-8", "replace").count("\ufffd")
    return controls + wrong > max(1, len(head) // 20)
