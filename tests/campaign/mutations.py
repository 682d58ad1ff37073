"""Ways in which the bytes of a file go wrong."""

from __future__ import annotations

import random

WORDS = (
    b"nan", b"-inf", b"1e999", b'"', b"'", b",", b"\n", b"\r", b"\0", b"\xff\xfe", b"\xef\xbb\xbf",
    b"99999999999999999999", b"-1", b"{", b"]", b"null", b"true", b"0x10", b":", b"#", b"\x1b[2J",
)  # fmt: skip


def mutated(content: bytes, choose: random.Random) -> bytes:
    """Change some bytes, most often near the beginning or the end, where formats say what is in."""
    data = bytearray(content)
    for _ in range(choose.choice([1, 1, 1, 2, 3, 8])):
        if not data:
            break
        data = choose.choice(CHANGES)(data, choose)
    return bytes(data)


def _place(data: bytearray, choose: random.Random) -> int:
    near = min(len(data), 300)
    return choose.choice(
        [
            choose.randrange(len(data)),
            choose.randrange(near),
            len(data) - 1 - choose.randrange(near),
        ]
    )


def _flip(data: bytearray, choose: random.Random) -> bytearray:
    data[_place(data, choose)] ^= 1 << choose.randrange(8)
    return data


def _set(data: bytearray, choose: random.Random) -> bytearray:
    data[_place(data, choose)] = choose.choice([0, 1, 0x7F, 0x80, 0xFF, choose.randrange(256)])
    return data


def _cut(data: bytearray, choose: random.Random) -> bytearray:
    return data[: _place(data, choose)]


def _remove(data: bytearray, choose: random.Random) -> bytearray:
    place = _place(data, choose)
    del data[place : place + choose.choice([1, 4, 8, 100, 1000])]
    return data


def _insert(data: bytearray, choose: random.Random) -> bytearray:
    place = _place(data, choose)
    word = choose.choice(
        [choose.choice(WORDS), choose.randbytes(8), bytes(choose.randrange(1, 99))]
    )
    data[place:place] = word
    return data


def _overwrite(data: bytearray, choose: random.Random) -> bytearray:
    place, word = _place(data, choose), choose.choice(WORDS)
    data[place : place + len(word)] = word
    return data


def _repeat(data: bytearray, choose: random.Random) -> bytearray:
    place = _place(data, choose)
    piece = data[place : place + choose.choice([4, 16, 500])]
    data[place:place] = piece * choose.randint(1, 3)
    return data


def _swap(data: bytearray, choose: random.Random) -> bytearray:
    one, other = sorted((_place(data, choose), _place(data, choose)))
    length = min(choose.choice([1, 8, 64]), max(other - one, 1))
    data[one : one + length], data[other : other + length] = (
        data[other : other + length],
        data[one : one + length],
    )
    return data


CHANGES = (_flip, _flip, _set, _cut, _remove, _insert, _overwrite, _repeat, _swap)
