"""What is kept after fitting: enough to score new rows, in a file of a few kilobytes.

A model file is a zip archive with one JSON header (version, classes, settings) and one ``.npy``
member an array. No pickle is involved, so opening a model of unknown origin runs no code.
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from biglp._core.arrays import values_per_row
from biglp._core.blocks import cut_rows
from biglp._core.device import Device, chosen_device
from biglp._core.errors import BadRowsError, ModelFileError, StoreError
from biglp._core.memory import format_bytes
from biglp._core.size import Size
from biglp._engines import Engine
from biglp._files.local import atomic_write
from biglp._files.uri import as_place, open_binary
from biglp._fit.plan import plan_new_rows
from biglp._fit.report import Report
from biglp._graph import FACTORS
from biglp._graph.features import Features, Normalisation
from biglp._graph.graph import Graph
from biglp._learn import ANSWERS
from biglp._learn.base import Predictor
from biglp._rows import PreparedRows, Source
from biglp._rows.prepared import Sample
from biglp._rows.source import Encoding
from biglp._transforms import Chain
from biglp._transforms.base import size_of_transformed

# --------------------------------------------------------------------------------------------------
# Classes of a model as JSON values, and back.


NUMPY_TYPE = re.compile(r"[<>|=]?[biufU]\d{1,6}")
"""Types of classes that are saved: truth values, whole numbers, numbers and text."""


def classes_to_json(classes: np.ndarray) -> dict[str, Any]:
    """Values and type of classes."""
    if classes.dtype.kind in "biufU":
        return {"dtype": classes.dtype.str, "values": classes.tolist()}
    values = classes.tolist()
    if all(isinstance(value, (str, int, float, bool)) for value in values):
        return {"dtype": "O", "values": values}
    raise ModelFileError(
        "only classes that are numbers or text can be saved; these are "
        f"{sorted({type(value).__name__ for value in values})}. Fit on numbers or text, or pickle."
    )


def classes_from_json(stored: dict[str, Any]) -> np.ndarray:
    """Classes from what :func:`classes_to_json` gave."""
    kind = stored["dtype"]
    if kind == "O":
        classes = np.empty(len(stored["values"]), dtype=object)
        classes[:] = stored["values"]
        return classes
    if not isinstance(kind, str) or not NUMPY_TYPE.fullmatch(kind):
        raise ValueError(f"classes of the type {kind!r}, which no model has")
    return np.array(stored["values"], dtype=kind)


# --------------------------------------------------------------------------------------------------


FORMAT = "biglp model"
VERSION = 4
LOOKED_AT = 1000
"""Sparse rows that tell how many entries a row has."""
ENDLESS = "thresholds"
"""End of the names of arrays in which infinity means something: the leaves of trees."""
UNPACKED_BYTES, UNPACKED_TIMES = 256 << 20, 100
"""A model may take so much unpacked, or so many times its file, whichever is more: a file made to
fill the memory takes a thousand times its size."""


@dataclass(frozen=True)
class ModelView:
    """How new rows become the normalised features of one view."""

    name: str
    chain: Chain  # what is done to rows before they become features
    features: Features  # these rows to normalised features


@dataclass
class Model:
    """A fitted model."""

    classes: np.ndarray  # (c,): for regression the numbers of the targets
    views: tuple[ModelView, ...]  # rows to normalised features
    answer: Predictor  # normalised features to probabilities
    dtype: np.dtype[Any]  # precision of the arithmetic
    n_features: int  # columns that rows must have
    # What was chosen and found while fitting; JSON values only
    report: Report = field(default_factory=Report)
    # How the columns of the training table became features; new tables are treated alike
    encoding: Encoding | None = None
    # Names of the columns that the features were made of, where the training rows had names
    input_names: tuple[str, ...] | None = None
    # Column that the training rows were known by, which results of new rows carry
    id_column: str | None = None

    @property
    def n_columns(self) -> int:
        """Columns that rows are given by: those of a table, else the features."""
        named = self.encoding is not None and self.encoding.columns is not None
        return self.encoding.n_inputs if self.encoding and named else self.n_features

    def encoding_for_new_rows(self) -> Encoding:
        """How new rows become features: as the training rows did, in the model's precision.

        A column that held whole numbers may hold fractions in a new file; they must not be cut off.
        """
        known = self.encoding or Encoding(None, self.n_features, self.dtype.str)
        return replace(known, dtype=self.dtype.str)

    def graph(
        self,
        engine: Engine,
        source: Source,
        memory: int,
        place: Device | None = None,
        seed: int = 0,
    ) -> Graph:
        """New rows, tied to the training rows through the model's features.

        ``source``: new rows as they are; ``memory``: budget of this machine, in bytes; ``place``:
        Where the arithmetic runs; on the processor by default; ``seed``: of random rows.
        """
        if source.n_features != self.n_features:
            estimator = "LowRankLabelPropagation" + "Regressor" * (self.answer.kind == "regression")
            raise BadRowsError(
                f"X has {source.n_features} features, but {estimator} is expecting "
                f"{self.n_features} features as input: give the same columns as in fit."
            )
        view, values = self.views[0], float(source.n_features)
        if source.is_sparse and not view.chain.fills_in:
            values = values_per_row(source.read(0, min(source.n_rows, LOOKED_AT)))
        size = Size(
            n_rows=source.n_rows,
            n_features=source.n_features,
            n_classes=len(self.classes),
            n_labelled=0,
            values=values,
            dtype=self.dtype,
            decoding=source.decoding_bytes,
            part_bytes=source.part_bytes,
        )
        size = size_of_transformed(size, source, view.chain)
        features, place = view.features.for_new_rows(), place or Device()
        work = 0.0  # sparse rows and own graphs stay on the processor
        if not source.is_sparse:
            work = float(source.n_rows) * source.n_features * features.factor.rank
        device = chosen_device(place.device, source.device, work, engine.local_number)
        place = replace(place, device=device)
        planned = engine.once(lambda: plan_new_rows(memory, features.factor, size, engine, place))
        rows_each, workers = planned
        engine.most_at_once = workers
        rows = PreparedRows(source, self.dtype, view.chain, place.device)
        sample = Sample.of_prepared(rows, seed)
        return Graph(engine, rows, cut_rows(rows, rows_each), features, sample, view.name)

    def save(self, path: Any) -> None:
        """Write the model to a file, which may be in a store, whole or not at all."""
        arrays = {f"decision.{name}": array for name, array in self.answer.state().items()}
        for view in self.views:
            factor, sums = view.features.factor.state(), view.features.normalisation.column_sums
            arrays |= {f"{view.name}.factor.{name}": array for name, array in factor.items()}
            chain = view.chain.state()
            arrays |= {f"{view.name}.chain.{name}": array for name, array in chain.items()}
            arrays |= {} if sums is None else {f"{view.name}.column_sums": sums}
        header = {
            "format": FORMAT,
            "version": VERSION,
            "classes": classes_to_json(self.classes),
            "views": [
                {
                    "name": view.name,
                    "factor": view.features.factor.kind,
                    "n_rows": view.features.normalisation.n_rows,
                }
                for view in self.views
            ],
            "decision": self.answer.kind,
            "dtype": np.dtype(self.dtype).str,
            "n_features": self.n_features,
            "arrays": sorted(arrays),
            "report": self.report,
            "encoding": self.encoding and self.encoding.to_json(),
            "input_names": self.input_names,
            "id_column": self.id_column,
        }
        with (
            atomic_write(as_place(path)) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name in ("header.json", *arrays):
                # Without the time of day: the same model is the same bytes.
                member = zipfile.ZipInfo(f"{name}.npy" if name in arrays else name)
                member.compress_type = zipfile.ZIP_DEFLATED
                buffer = io.BytesIO()
                if name in arrays:
                    np.save(buffer, arrays[name], allow_pickle=False)
                else:
                    buffer.write(json.dumps(header).encode())
                archive.writestr(member, buffer.getvalue())

    @classmethod
    def load(cls, path: Any) -> Model:
        """Read a model file, which may be in a store."""
        path = as_place(path)
        try:
            header, arrays = _read_archive(path)
            views = []
            for view in header["views"]:
                own = _part(arrays, view["name"])
                factor = FACTORS[view["factor"]].from_state(_part(own, "factor"))
                degrees = Normalisation(own.get("column_sums"), view["n_rows"], factor.mixing)
                chain = Chain.from_state(_part(own, "chain"))
                views.append(ModelView(view["name"], chain, Features(factor, degrees)))
            encoding, names = header["encoding"], header["input_names"]
            return cls(
                classes=classes_from_json(header["classes"]),
                views=tuple(views),
                answer=ANSWERS[header["decision"]].from_state(_part(arrays, "decision")),
                dtype=np.dtype(header["dtype"]),
                n_features=header["n_features"],
                report=Report(header["report"]),
                encoding=None if encoding is None else Encoding.from_json(encoding),
                input_names=None if names is None else tuple(names),
                id_column=header["id_column"],
            )
        except (ModelFileError, StoreError):
            raise
        except Exception as error:  # archives are damaged, and types of NumPy wrong, in many ways
            raise ModelFileError(
                f"{path} is not a whole biglp model file ({type(error).__name__}: {error}); "
                "copy it again or fit and save it anew."
            ) from error


def _part(arrays: dict[str, np.ndarray], owner: str) -> dict[str, np.ndarray]:
    """Arrays whose names begin with ``owner.``, without that."""
    prefix = f"{owner}."
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _read_archive(path: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if not path.exists():
        raise ModelFileError(f"there is no model file {path}; save one with model.save(path).")
    if not path.is_file():  # a pipe or a device might never end
        raise ModelFileError(f"{path} is no regular file; give one that model.save(path) wrote.")
    with open_binary(path) as file, zipfile.ZipFile(file) as archive:
        # Before anything is unpacked that would fill the memory.
        unpacked = sum(member.file_size for member in archive.infolist())
        allowed = max(UNPACKED_BYTES, UNPACKED_TIMES * file.seek(0, io.SEEK_END))
        if unpacked > allowed:
            raise ModelFileError(
                f"{path} would take {format_bytes(unpacked)} unpacked, and a model file of its "
                f"size takes at most {format_bytes(allowed)}; it is not one that biglp wrote."
            )
        header = json.loads(archive.read("header.json"))
        if header.get("format") != FORMAT:
            raise ModelFileError(f"{path} is an archive, but not one that biglp wrote.")
        if header["version"] != VERSION:
            raise ModelFileError(
                f"{path} has model format {header['version']}, and this biglp reads {VERSION}; "
                "fit again and save it anew, or use the release that wrote it."
            )
        arrays = {}
        for name in sorted(set(header["arrays"])):
            with warnings.catch_warnings(action="ignore"):
                array = np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
            # Numbers that are none: answers made of them would be one class, without a word.
            if array.dtype.kind == "f":
                most = np.inf if name.endswith(ENDLESS) else np.sqrt(np.finfo(array.dtype).max)
                if not (np.abs(array) <= most).all():
                    raise ValueError(
                        f"{name} holds NaN, infinity or numbers whose squares are infinite"
                    )
            arrays[name] = array
    return header, arrays
