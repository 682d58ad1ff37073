"""Ways in which the bytes of a file go wrong."""

import random

WORDS = (
    b"nan", b"-inf", b"1e999", b'"', b"'", b",", b"\n", b"\r", b"\0", b"\xff\xfe", b"\xef\xbb\xbf",
    b"99999999999999999999", b"-1", b"{", b"]", b"null", b"true", b"0x10", b":", b"#", b"\x1b[2J",
)  # fmt: skip
WAYS = ("flip", "flip", "set", "cut", "remove", "insert", "overwrite", "repeat", "swap")


def mutated(content: bytes, choose: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(choose.choice([1, 1, 1, 2, 3, 8])):
        if not data:
            break
        _change(data, choose, choose.choice(WAYS))
    return bytes(data)


def _change(data: bytearray, choose: random.Random, way: str) -> None:
    def place() -> int:
        near = choose.randrange(min(len(data), 300))
        return choose.choice([choose.randrange(len(data)), near, len(data) - 1 - near])

    at = place()
    if way == "flip":
        data[at] ^= 1 << choose.randrange(8)
    elif way == "set":
        data[at] = choose.choice([0, 1, 0x7F, 0x80, 0xFF, choose.randrange(256)])
    elif way == "cut":
        del data[at:]
    elif way == "remove":
        del data[at : at + choose.choice([1, 4, 8, 100, 1000])]
    elif way == "insert":
        odd = [choose.choice(WORDS), choose.randbytes(8), bytes(choose.randrange(1, 99))]
        data[at:at] = choose.choice(odd)
    elif way == "overwrite":
        word = choose.choice(WORDS)
        data[at : at + len(word)] = word
    elif way == "repeat":
        data[at:at] = data[at : at + choose.choice([4, 16, 500])] * choose.randint(1, 3)
    else:  # two pieces change places
        one, other = sorted((at, place()))
        length = min(choose.choice([1, 8, 64]), max(other - one, 1))
        first, second = data[one : one + length], data[other : other + length]
        data[one : one + length], data[other : other + length] = second, first
