"""Which writing systems a text uses, counted by one look-up a character."""

from __future__ import annotations

import string

import numpy as np
from numpy.typing import NDArray

_BLOCKS = {
    "LATIN": ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F), (0x1E00, 0x1EFF)),
    "GREEK": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "CYRILLIC": ((0x400, 0x52F),),
    "ARMENIAN": ((0x530, 0x58F),),
    "HEBREW": ((0x590, 0x5FF),),
    "ARABIC": ((0x600, 0x6FF), (0x750, 0x77F), (0x8A0, 0x8FF)),
    "INDIC": ((0x900, 0xDFF),),
    "THAI": ((0xE00, 0xE7F),),
    "LAO": ((0xE80, 0xEFF),),
    "TIBETAN": ((0xF00, 0xFFF),),
    "BURMESE": ((0x1000, 0x109F),),
    "GEORGIAN": ((0x10A0, 0x10FF),),
    "ETHIOPIC": ((0x1200, 0x137F),),
    "KHMER": ((0x1780, 0x17FF),),
    "MONGOLIAN": ((0x1800, 0x18AF),),
    "HANGUL": ((0x1100, 0x11FF), (0x3131, 0x318E), (0xAC00, 0xD7AF)),
    "KANA": ((0x3041, 0x3096), (0x30A1, 0x30FA)),
    "HAN": ((0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
}
_NAMES = tuple(_BLOCKS)
_ASCII_LETTERS = string.ascii_letters.encode()
_CJK = frozenset({"HAN", "KANA", "HANGUL"})


def _table() -> NDArray[np.uint8]:
    table = np.zeros(0x10000, dtype=np.uint8)
    for number, blocks in enumerate(_BLOCKS.values(), start=1):
        for first, last in blocks:
            table[first : last + 1] = number
    return table


_TABLE = _table()


def letters_by_script(text: str) -> dict[str, int]:
    """How many letters of each script `text` holds, scripts without any left out."""
    if text.isascii():
        letters = len(text) - len(text.encode().translate(None, _ASCII_LETTERS))
        return {"LATIN": letters} if letters else {}
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    counts = np.bincount(_TABLE[np.minimum(codes, 0xFFFF)], minlength=len(_NAMES) + 1)
    return {name: count for name, count in zip(_NAMES, counts.tolist()[1:], strict=True) if count}


def group_of(script: str) -> frozenset[str]:
    """The scripts whose texts may hold letters of `script`: Japanese and Korean use Chinese letters too."""
    return _CJK if script == "HAN" else frozenset({script})
