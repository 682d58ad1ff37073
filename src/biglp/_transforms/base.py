"""What is done to rows before the graph sees them: transforms, one after the other in a chain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from biglp._core import Registry
from biglp._core.arrays import Rows, like, namespace, to_numpy
from biglp._core.errors import BadRowsError
from biglp._core.size import Size


class RowTransform(ABC):
    """Rows in, rows out: NumPy arrays, CSR matrices or torch tensors.

    It is learnt from a sample of rows, applied to every block of them, and stored with the model.
    A new one is a class in a file of its own and a line in :data:`TRANSFORMS`;
    ``projection="its name"`` puts it after the scaling.
    """

    name: ClassVar[str]  # in TRANSFORMS and in model files
    learnt: ClassVar[tuple[str, ...]] = ()
    """Attributes that go to a model file, where :meth:`state` says nothing else."""

    @abstractmethod
    def fit(self, sample: Rows, size: Size | None = None) -> Self:
        """Return the transform as it is learnt from a sample of rows.

        The size is that of the whole problem, with its rows as they were read.
        """

    @abstractmethod
    def apply(self, rows: Rows) -> Rows:
        """Transform a block of rows, which must not be changed in place.  (b, m) → (b, width)."""

    @abstractmethod
    def width(self, n_features: int) -> int:
        """Number of features that so many become."""

    def state(self) -> dict[str, np.ndarray]:
        """All that was learnt, for a file."""
        values = {name: getattr(self, name) for name in self.learnt}
        return {name: np.asarray(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """Rebuild from :meth:`state`."""
        known = {name: state[name] for name in cls.learnt if name in state}
        return cls(**{name: array if array.ndim else array.item() for name, array in known.items()})

    def describe(self) -> dict[str, Any]:
        """What was recognised and is done, for the report."""
        return {}

    @property
    def n_bytes(self) -> int:
        """Memory that it takes beside the rows, where that counts."""
        return 0

    def without(self, rows: Rows) -> Rows:
        """Rows without what it reads of them: for other views of these."""
        return rows

    @property
    def embeds(self) -> bool:
        """Whether the features that come out are others than those that go in.

        They have no names then, and rows on the processor, where all of them are small, are made
        only once.
        """
        return True

    @property
    def keeps_sparse(self) -> bool:
        """Whether CSR rows stay CSR."""
        return False

    @property
    def changes_rows(self) -> bool:
        """Whether anything at all is done to rows."""
        return True

    @property
    def unit(self) -> bool:
        """Whether all rows have length 1 afterwards."""
        return False


TRANSFORMS: Registry[type[RowTransform]] = Registry(
    {
        "fill": "biglp._transforms.base:Fill",
        "scale": "biglp._transforms.scale:Scale",
        "parts": "biglp._transforms.scale:Parts",
        "project": "biglp._transforms.project:Project",
        "meaning": "biglp._transforms.text_model:Meaning",
        "views": "biglp._transforms.views:Views",
    }
)
"""Every transform by its name: one line each."""
OWN = tuple(TRANSFORMS)
"""Those whose place in a chain is known; ``projection=`` takes the names of all others."""


@dataclass(frozen=True)
class Chain:
    """Transforms, one after the other; an empty chain leaves rows as they are."""

    transforms: Sequence[RowTransform] = ()
    embeds: bool = field(init=False)
    unit: bool = field(init=False)
    # Names of the views that rows have side by side; of one, that of the rows
    views: list[str] = field(init=False)

    def __post_init__(self) -> None:
        chain = self.transforms
        views = list(getattr(chain[-1], "chains", ["rows"])) if chain else ["rows"]
        object.__setattr__(self, "views", views)
        object.__setattr__(self, "embeds", any(transform.embeds for transform in chain))
        object.__setattr__(self, "unit", bool(chain) and chain[-1].unit)

    def fit(self, sample: Rows, size: Size | None = None) -> Chain:
        """Learn each transform from the sample as those before it leave it."""
        learnt = Chain()
        for transform in self.transforms:
            learnt = learnt.then(transform, sample, size)
        return learnt

    def then(self, transform: RowTransform, sample: Rows, size: Size | None = None) -> Chain:
        """Add a transform that is learnt from a sample, which comes as it is."""
        return Chain([*self.transforms, transform.fit(self.apply(sample), size)])

    def apply(self, rows: Rows) -> Rows:
        """Transform a block of rows.  (b, m) → (b, width)."""
        for transform in self.transforms:
            rows = transform.apply(rows)
        return rows

    def width(self, n_features: int) -> int:
        for transform in self.transforms:
            n_features = transform.width(n_features)
        return n_features

    @property
    def keeps_sparse(self) -> bool:
        return all(transform.keeps_sparse for transform in self.transforms)

    @property
    def fills_in(self) -> bool:
        """Whether CSR rows become dense with all of their features, as centred ones do."""
        return any(not (step.keeps_sparse or step.embeds) for step in self.transforms)

    @property
    def changes_rows(self) -> bool:
        return any(transform.changes_rows for transform in self.transforms)

    def describe(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        for transform in self.transforms:
            facts |= transform.describe()
        return facts

    @property
    def scaling(self) -> str:
        """How features are scaled, by the name that reports have for it."""
        return str(self.describe().get("scaling", "none"))

    def state(self) -> dict[str, np.ndarray]:
        """The names of the transforms, and the arrays of each after its index in the chain."""
        names = np.array([transform.name for transform in self.transforms], dtype=np.str_)
        return {"names": names} | {
            f"{index}.{key}": array
            for index, transform in enumerate(self.transforms)
            for key, array in transform.state().items()
        }

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Chain:
        """Rebuild from :meth:`state`, among which there may be other arrays."""
        arrays: list[dict[str, np.ndarray]] = [{} for _ in state["names"]]
        for key, array in state.items():
            index, _, name = key.partition(".")
            if name and index.isdecimal():
                arrays[int(index)][name] = array
        names = state["names"].tolist()
        return cls([TRANSFORMS[n].from_state(a) for n, a in zip(names, arrays, strict=True)])


def are_there(rows: Any, dtype: np.dtype[Any], chain: Chain) -> bool:
    """Whether a source's rows are on a device already, in a type that the sweeps can use.

    Half precision is one: it stays what it is, and is widened where it is worked on.
    """
    usable = rows.dtype in (dtype, np.float16)
    return rows.device != "cpu" and usable and not chain.changes_rows


def size_of_transformed(size: Size, source: Any, chain: Chain) -> Size:
    """The size of a problem, with what its chain makes of the source's rows."""
    width = chain.width(size.n_features)
    # Projected sparse rows are dense; other rows count as wide as they are before or after.
    dense = source.is_sparse and chain.embeds and not chain.keeps_sparse
    if are_there(source, size.dtype, chain):
        gpu_row = 0
    elif source.dtype == np.float16 and not chain.changes_rows:
        gpu_row = width * source.dtype.itemsize
    else:
        gpu_row = width * size.dtype.itemsize
    return replace(
        size,
        directions=width if dense or width > size.n_features else 0,
        values=max(size.values, width) if width > size.n_features else size.values,
        gpu_row=gpu_row,
    )


@dataclass(frozen=True)
class Fill(RowTransform):
    """Missing values of dense rows become ``means`` of their feature; NaN: they stay.  (m,)."""

    name: ClassVar[str] = "fill"
    learnt: ClassVar[tuple[str, ...]] = ("means",)
    embeds: ClassVar[bool] = False
    means: np.ndarray = field(default_factory=lambda: np.empty(0))

    def fit(self, sample: Rows, size: Size | None = None) -> Self:
        return self.from_pieces([to_numpy(sample)], sample.shape[1], "X")

    @classmethod
    def from_pieces(cls, pieces: Iterable[np.ndarray], n_features: int, name: str) -> Self:
        """Take the mean of what is there of each feature, over all pieces of the rows."""
        sums, counts = np.zeros(n_features), np.zeros(n_features)
        for rows in pieces:
            there = ~np.isnan(rows)
            with np.errstate(over="ignore", invalid="ignore"):  # infinite rows are refused later
                sums += np.sum(rows, axis=0, where=there, dtype=np.float64)
            counts += there.sum(axis=0)
        empty = np.flatnonzero(counts == 0)
        if empty.size:
            raise BadRowsError(
                f"{name}: features {', '.join(map(str, empty[:8]))} (counted from 0) have no "
                "value at all, so there is no mean to fill them with; leave them out."
            )
        return cls(np.asarray(sums / counts))

    def apply(self, rows: Rows) -> Rows:
        xp = namespace(rows)
        missing = xp.isnan(rows)
        return xp.where(missing, like(rows, self.means), rows) if missing.any() else rows

    def width(self, n_features: int) -> int:
        return n_features


def below(state: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Arrays whose names begin with a prefix, without that."""
    return {name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)}
