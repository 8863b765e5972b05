"""JSON as inference servers really write it: NaN, infinities, lone surrogates, a BOM, broken UTF-8."""

from __future__ import annotations

import json
from typing import Any

from ingest.errors import DeadLetterError

_BOM = b"\xef\xbb\xbf"


def loads(data: bytes, notes: dict[str, None]) -> Any:
    """Decode JSON, taking `NaN`, `Infinity` and `-Infinity` as floats and lone surrogates as they are.

    Bytes that are no UTF-8 become U+FFFD, with the code `invalid_utf8` in `notes` (used as an ordered
    set). Raises DeadLetterError (`invalid_json`) naming the place, never what stands there.
    """
    try:
        text = data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError:
        notes["invalid_utf8"] = None
        text = data.removeprefix(_BOM).decode("utf-8", "replace")
    try:
        # strict=False: a raw line feed or tab inside a string is still readable.
        return json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        raise DeadLetterError(
            "invalid_json", f"invalid JSON at character {error.pos} of {len(text)}: {error.msg}"
        ) from None
    except RecursionError:
        raise DeadLetterError("invalid_json", "invalid JSON: nested too deeply") from None
    except ValueError as error:
        raise DeadLetterError("invalid_json", f"invalid JSON: {error}") from None


def clean_text(text: str, notes: dict[str, None]) -> str:
    """Join surrogate halves into their character; what stays alone becomes U+FFFD.

    The halves may have come in two deltas, so call it on the whole. The code `lone_surrogate` goes to
    `notes` where one was left.
    """
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    try:
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        notes["lone_surrogate"] = None
    return joined
