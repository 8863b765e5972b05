"""CityHash128 of version 1.0.2, the checksum of ClickHouse's compressed blocks.

Google changed the function after that version; ClickHouse kept it
(`contrib/cityhash102` of the ClickHouse sources, which this follows).
"""

from __future__ import annotations

import struct

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_K0 = 0xC3A5_C85C_97CB_3127
_K1 = 0xB492_B66F_BE98_F273
_K2 = 0x9AE1_6A3B_2F90_404F
_K3 = 0xC949_D7C7_509E_6557
_MIX = 0x9DDF_EA08_EB38_2D69

_word = struct.Struct("<Q").unpack_from
_four = struct.Struct("<4Q").unpack_from
_words = struct.Struct("<8Q").unpack_from


def cityhash128(data: bytes) -> tuple[int, int]:
    """The hash's low and high 64 bits."""
    size = len(data)
    if size >= 16:
        return _seeded(data[16:], _word(data)[0] ^ _K3, _word(data, 8)[0])
    if size >= 8:
        return _seeded(b"", _word(data)[0] ^ size * _K0 & _MASK, _word(data, size - 8)[0] ^ _K1)
    return _seeded(data, _K0, _K1)


def _rotated(value: int, shift: int) -> int:
    return (value >> shift | value << (64 - shift)) & _MASK


def _mixed(value: int) -> int:
    return value ^ value >> 47


def _pair(low: int, high: int) -> int:
    a = _mixed((low ^ high) * _MIX & _MASK)
    return _mixed((high ^ a) * _MIX & _MASK) * _MIX & _MASK


def _short(data: bytes) -> int:
    """The hash of 0 to 16 bytes."""
    size = len(data)
    first: int
    last: int
    if size > 8:
        first, last = _word(data)[0], _word(data, size - 8)[0]
        return _pair(first, _rotated(last + size & _MASK, size)) ^ last
    if size >= 4:
        first, last = struct.unpack_from("<I", data)[0], struct.unpack_from("<I", data, size - 4)[0]
        return _pair(size + (first << 3) & _MASK, last)
    if size:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[-1] << 2)
        return _mixed((y * _K2 ^ z * _K3) & _MASK) * _K2 & _MASK
    return _K2


def _murmur(data: bytes, low: int, high: int) -> tuple[int, int]:
    size = len(data)
    a, b = low, high
    if size <= 16:
        a = _mixed(a * _K1 & _MASK) * _K1 & _MASK
        c = b * _K1 + _short(data) & _MASK
        d = _mixed(a + (_word(data)[0] if size >= 8 else c) & _MASK)
    else:
        c = _pair(_word(data, size - 8)[0] + _K1 & _MASK, a)
        d = _pair(b + size & _MASK, c + _word(data, size - 16)[0] & _MASK)
        a = a + d & _MASK
        for at in range(0, size - 16, 16):
            a = (a ^ _mixed(_word(data, at)[0] * _K1 & _MASK) * _K1) * _K1 & _MASK
            b ^= a
            c = (c ^ _mixed(_word(data, at + 8)[0] * _K1 & _MASK) * _K1) * _K1 & _MASK
            d ^= c
    a, b = _pair(a, c), _pair(d, b)
    return a ^ b, _pair(b, a)


def _weak(w: int, x: int, y: int, z: int, a: int, b: int) -> tuple[int, int]:
    a = a + w & _MASK
    b = _rotated(b + a + z & _MASK, 21)
    total = a + x + y & _MASK
    return total + z & _MASK, b + _rotated(total, 44) + a & _MASK


def _seeded(data: bytes, low: int, high: int) -> tuple[int, int]:
    size = len(data)
    if size < 128:
        return _murmur(data, low, high)
    x, y, z = low, high, size * _K1 & _MASK
    v0 = _rotated(y ^ _K1, 49) * _K1 + _word(data)[0] & _MASK
    v1 = _rotated(v0, 42) * _K1 + _word(data, 8)[0] & _MASK
    w0 = _rotated(y + z & _MASK, 35) * _K1 + x & _MASK
    w1 = _rotated(x + _word(data, 88)[0] & _MASK, 53) * _K1 & _MASK
    whole = size - size % 128
    for at in range(0, whole, 64):
        d0, d1, d2, d3, d4, d5, d6, d7 = _words(data, at)
        x = _rotated(x + y + v0 + d2 & _MASK, 37) * _K1 & _MASK ^ w1
        y = _rotated(y + v1 + d6 & _MASK, 42) * _K1 & _MASK ^ v0
        z = _rotated(z ^ w0, 33)
        v0, v1 = _weak(d0, d1, d2, d3, v1 * _K1 & _MASK, x + w0)
        w0, w1 = _weak(d4, d5, d6, d7, z + w1, y)
        z, x = x, z
    y = y + _rotated(w0, 37) * _K0 + z & _MASK
    x = x + _rotated(v0 + z & _MASK, 49) * _K0 & _MASK
    for done in range(32, size - whole + 32, 32):
        at = size - done
        y = _rotated(y - x & _MASK, 42) * _K0 + v1 & _MASK
        w0 = w0 + _word(data, at + 16)[0] & _MASK
        x = _rotated(x, 49) * _K0 + w0 & _MASK
        w0 = w0 + v0 & _MASK
        d0, d1, d2, d3 = _four(data, at)
        v0, v1 = _weak(d0, d1, d2, d3, v0, v1)
    x, y = _pair(x, v0), _pair(y, w0)
    return _pair(x + v1 & _MASK, w1) + y & _MASK, _pair(x + w1 & _MASK, y + v1 & _MASK)
