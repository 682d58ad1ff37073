"""Labels of any type: which classes there are, which rows are labelled, by what and how surely.

A row is unlabelled when its label is -1 (as a number or as text), None, NaN or the empty string,
when its label distribution is all zeros or NaN, or when its weight is zero. Only labelled rows are
kept, so that a handful of labels is a handful of numbers however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from biglp._core.arrays import device_tensor, on_host, to_numpy
from biglp._core.errors import LabelError, LabelWarning, ParameterError

PIECE_ROWS = 1 << 16
"""Rows of a table of label distributions that are looked at together."""
MOST_WEIGHT = 1e12
"""Heaviest label: its square, times the number of rows, must remain a number like others."""


class OwnLabels(NamedTuple):
    """Labelled rows of a block, counted from its first, (l,), with distributions, (l, c)."""

    rows: np.ndarray
    shares: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Labels:
    """The l labelled rows of a data set, and its c classes.

    A label of weight 2 is a label twice; without ``weights`` all weigh 1. ``codes`` are positions
    in ``classes``, of a label distribution the likeliest; without ``distribution`` all is on them.
    """

    classes: np.ndarray  # (c,), sorted
    rows: np.ndarray  # (l,), increasing
    codes: np.ndarray  # (l,)
    n_rows: int  # labelled or not
    weights: np.ndarray | None = None  # (l,), above 0
    distribution: np.ndarray | None = None  # (l, c), adding up to 1
    # (l,): whether a label comes from the name of its class, and from nobody who has seen the row
    guessed: np.ndarray | None = None
    n_classes: int = field(init=False)
    n_columns: int = field(init=False)  # of Y: one for each class
    # Weight of the labels of each class: their number, where none has a weight.  (c,)
    counts: np.ndarray = field(init=False, repr=False)
    # Labelled rows of each class, whatever they weigh.  (c,)
    rows_each: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", len(self.classes))
        object.__setattr__(self, "n_columns", len(self.classes))
        if self.distribution is None:
            counts = np.bincount(self.codes, self.weights, minlength=self.n_classes)
        else:
            weights = np.ones(len(self.rows)) if self.weights is None else self.weights
            counts = np.asarray(self.distribution.T @ weights)
        object.__setattr__(self, "counts", counts)
        rows_each = np.bincount(self.codes, minlength=self.n_classes)
        object.__setattr__(self, "rows_each", rows_each)

    @property
    def given(self) -> np.ndarray | None:
        """Labelled rows of w·Y where they are not simply one-hot.  (l, c)."""
        if self.weights is None and self.distribution is None:
            return None
        return self.targets_within(0, self.n_rows)[1]

    def own(self, start: int, stop: int) -> OwnLabels:
        """All that is known about the labelled rows between two rows."""
        first, last = np.searchsorted(self.rows, [start, stop])
        shares, weights = self.distribution, self.weights
        return OwnLabels(
            self.rows[first:last] - start,
            np.eye(self.n_classes)[self.codes[first:last]]
            if shares is None
            else shares[first:last],
            np.ones(last - first) if weights is None else weights[first:last],
        )

    def targets_within(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Labelled rows between two rows, counted from ``start``, and their rows of w·Y."""
        rows, shares, weights = self.own(start, stop)
        return rows, shares if self.weights is None else shares * weights[:, None]

    def one_hot(self, codes: np.ndarray) -> np.ndarray:
        """Rows of Y for class codes.  (l,) → (l, c)."""
        return np.eye(self.n_classes)[codes]

    def take(self, chosen: np.ndarray) -> Labels:
        """Some of the labelled rows, by their index among them, increasing."""
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            distribution=None if self.distribution is None else self.distribution[chosen],
            guessed=None if self.guessed is None else self.guessed[chosen],
        )

    @property
    def by_people(self) -> Labels:
        """Those that are not guessed."""
        if self.guessed is None:
            return self
        return replace(self.take(np.flatnonzero(~self.guessed)), guessed=None)


def encode_labels(
    y: Any, n_rows: int, sample_weight: Any = None, classes: Any = None, *, least: int = 2
) -> Labels:
    """Find the classes and the labelled rows in ``y``, which has so many classes at least.

    ``y`` holds labels, (n_rows,), or label distributions, (n_rows, c), also as a sparse matrix;
    their columns stand for ``classes``, 0 to c - 1 by default. Weights of unlabelled rows are not
    looked at.
    """
    if n_columns(y) > 1:
        names = class_names(classes, n_columns(y))
        rows, shares = read_distributions(y, n_rows)
        if not len(rows):
            raise _no_labels(n_rows)
        labels = Labels(names, rows, shares.argmax(axis=1), n_rows)
        if not ((shares == 0) | (shares == 1)).all():  # else hard labels, written as a table
            labels = replace(labels, distribution=shares)
        if sample_weight is not None:
            labels = weighted(labels, given_weights(sample_weight, labels.rows, n_rows))
        empty = labels.classes[labels.counts == 0].tolist()
        if empty:
            raise LabelError(
                f"y gives class {empty[0]!r} no share in any of the {len(labels.rows):,} labelled "
                f"rows ({len(empty)} of {labels.n_classes} classes have none), so nothing is known "
                "about it; label a row of it, or leave its column out of y."
            )
        return labels
    if classes is not None:
        raise ParameterError(
            "classes= says what the columns of label distributions stand for, but y has one label "
            "a row, which names its class; leave classes out."
        )
    tensor = device_tensor(y)
    if tensor is not None:  # on a GPU: only the labels that are known leave it
        if tuple(tensor.shape) != (n_rows,):
            raise LabelError(
                f"y has shape {tuple(tensor.shape)} but X has {n_rows:,} rows; give one label a "
                "row, with -1 or NaN where the label is unknown."
            )
        # NaN is not equal to itself.
        on_device = ((tensor != -1) & (tensor == tensor)).nonzero()[:, 0]
        values, rows = to_numpy(tensor[on_device]), to_numpy(on_device)
        whole = values.astype(np.int64) if values.dtype.kind == "f" else values
        values = whole if (whole == values).all() else values
        weights = None if sample_weight is None else given_weights(sample_weight, rows, n_rows)
        return labels_from_pairs(rows, values, n_rows, weights)
    values = as_column(y)
    if len(values) != n_rows:
        raise LabelError(
            f"y has {len(values):,} entries but X has {n_rows:,} rows; give one label a row, "
            "with -1, None, NaN or '' where the label is unknown."
        )
    rows = np.flatnonzero(~unlabelled(values))
    weights = None
    if sample_weight is not None:
        weights = given_weights(sample_weight, rows, n_rows)
        rows, weights = rows[weights > 0], weights[weights > 0]
    labels = _coded(rows, values[rows], n_rows)
    if weights is not None:
        labels = weighted(labels, weights)
    if labels.n_classes < least:
        hint = " A label of -1 counts as unlabelled: call that class something else." * bool(
            np.isin(values[unlabelled(values)].astype(str), ["-1", "-1.0"]).any()
        )
        raise _one_class(labels, hint)
    return labels


def only_classes(classes: dict[Any, str | None], n_rows: int) -> Labels:
    """Classes that are known by their names, and no label."""
    nothing = np.empty(0, dtype=np.int64)
    values = list(classes)
    labels = _coded(np.arange(len(values)), _narrow(values), n_rows)
    return replace(labels, rows=nothing, codes=nothing)


def with_classes(labels: Labels, classes: dict[Any, str | None]) -> Labels:
    """The same labels, with classes that none of them has yet."""
    known = labels.classes.tolist()
    # On the command line names are texts, whatever the labels are.
    values = {str(value): value for value in known}
    fresh = [value for value in classes if value not in known and str(value) not in values]
    if not fresh:
        return labels
    together = _coded(np.arange(len(known) + len(fresh)), _narrow([*known, *fresh]), labels.n_rows)
    places = together.codes[: len(known)]
    distribution = None
    if labels.distribution is not None:
        distribution = np.zeros((len(labels.rows), together.n_classes))
        distribution[:, places] = labels.distribution
    codes = places[labels.codes]
    return replace(labels, classes=together.classes, codes=codes, distribution=distribution)


def labels_from_pairs(
    rows: np.ndarray, values: np.ndarray, n_rows: int, weights: np.ndarray | None = None
) -> Labels:
    """Find the classes of rows, (l,), increasing, whose labels, (l,), are known.

    With weights, (l,), a row may occur several times: equal labels add their weights up, and
    different ones make a label distribution.
    """
    if weights is not None:
        check_weights(weights, rows)
        rows, values, weights = rows[weights > 0], values[weights > 0], weights[weights > 0]
    labels = _coded(rows, values, n_rows)
    if labels.n_classes < 2:
        raise _one_class(labels)
    if weights is None:
        return labels
    if (np.diff(rows) > 0).all():
        return weighted(labels, weights)
    distinct, indices = np.unique(labels.rows, return_inverse=True)
    sums = np.zeros((len(distinct), labels.n_classes))
    np.add.at(sums, (indices, labels.codes), weights)
    totals = sums.sum(axis=1)
    soft = bool(((sums > 0).sum(axis=1) > 1).any())
    distribution = sums / totals[:, None] if soft else None
    labels = Labels(labels.classes, distinct, sums.argmax(axis=1), n_rows, None, distribution)
    # Shares such as 0.3 + 0.7 are meant to weigh 1, and do but for rounding.
    return weighted(labels, np.where(np.abs(totals - 1.0) < 1e-9, 1.0, totals))


def weighted(labels: Labels, weights: np.ndarray) -> Labels:
    """Give labels weights; a weight of zero takes a label away, and weights of 1 are none."""
    if (weights == 1.0).all():
        return labels
    known = np.flatnonzero(weights > 0)
    if not len(known):
        raise _no_labels(labels.n_rows)
    return replace(labels.take(known), weights=weights[known])


def _coded(rows: np.ndarray, values: np.ndarray, n_rows: int) -> Labels:
    """Sort the distinct labels; mixed types sort by type, then text."""
    if len(rows) == 0:
        raise _no_labels(n_rows)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise LabelError("y holds infinity; labels must be finite numbers, text or None.")
        if (values != np.floor(values)).any():
            raise LabelError(
                "Unknown label type: y holds numbers with fractions, such as "
                f"{values[values != np.floor(values)][0]}, which are measurements and not classes; "
                "give integers or text."
            )
    if values.dtype.kind != "O":
        classes, codes = np.unique(values, return_inverse=True)
        return Labels(classes, rows, codes, n_rows)
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    distinct = list(dict.fromkeys(plain))
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=lambda value: (type(value).__name__, str(value)))
    code_of = {value: code for code, value in enumerate(distinct)}
    codes = np.fromiter((code_of[value] for value in plain), dtype=np.int64, count=len(values))
    return Labels(_narrow(distinct), rows, codes, n_rows)


def _no_labels(n_rows: int) -> LabelError:
    return LabelError(
        f"none of the {n_rows:,} rows has a label (all are -1, None, NaN or '', or of weight "
        "zero); label at least one row of each of two classes."
    )


def _one_class(labels: Labels, hint: str = "") -> LabelError:
    return LabelError(
        f"only one class, {labels.classes.tolist()[0]!r}, is among the {len(labels.rows):,} "
        f"labelled rows; the labels must hold at least two classes.{hint}"
    )


# --------------------------------------------------------------------------------------------------
# What people write where a row has no label, and labels that look as if they meant that.


_WORDS = """unknown, unk, none, null, nil, nan, na, n/a, n.a., ?, ??, -, --, ., unlabeled,
unlabelled, nolabel, no label, not labeled, not labelled, not available, not applicable, missing,
undefined, unspecified, unassigned, tbd, todo, to do, empty, blank"""
LOOKS_UNLABELLED = frozenset(word.strip() for word in _WORDS.split(","))
"""What people write. A class may be called so, too: the user is asked."""
NEARLY_ALL = 0.95
"""Share of all rows from which on a label is suspected to mean "no label"."""
FEWEST_ROWS = 50
"""Rows below which nearly all of them are too few to suspect anything."""
MOST_SHOWN = 5


def suspicions(labels: Labels, *, names: bool = True) -> list[LabelWarning]:
    """Classes that may stand for "no label", by their sizes and, if so wanted, their names."""
    warnings, n_rows, classes = list[str](), labels.n_rows, labels.classes.tolist()
    counts, meant = np.bincount(labels.codes, minlength=len(classes)), set[int]()
    for code, name in enumerate(classes):
        plain = name.strip().casefold().strip("<>()[]{}\"'") if isinstance(name, str) else ""
        if " ".join(plain.replace("_", " ").split()) in LOOKS_UNLABELLED:
            meant.add(code)
    for name, count in ((classes[code], counts[code]) for code in sorted(meant) if names):
        warnings.append(
            f"{count:,} of {n_rows:,} rows have the label {name!r}, which usually "
            "means that there is none, and is taken as a class here. If these rows have no "
            "label, give None or -1 for them in Python, or --unlabelled "
            f"{_quoted(name)} on the command line, where --unlabelled -1 says that it is a class."
        )
    largest = int(counts.argmax())
    name, share = classes[largest], counts[largest] / n_rows
    if n_rows >= FEWEST_ROWS and share > NEARLY_ALL and largest not in meant:
        warnings.append(
            f"{share:.1%} of all {n_rows:,} rows have the label {name!r}. If it means "
            "that a row has no label, give None or -1 for it in Python, or --unlabelled "
            f"{_quoted(name)} on the command line."
        )
    alike: dict[str, list[str]] = {}
    for name in classes:
        if isinstance(name, str):
            alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    several = [spellings for spellings in alike.values() if len(spellings) > 1]
    if several:
        shown = "; ".join(", ".join(map(repr, spellings)) for spellings in several[:MOST_SHOWN])
        more = f" and {len(several) - MOST_SHOWN} more" if len(several) > MOST_SHOWN else ""
        warnings.append(
            f"classes that differ in capital letters or blanks only are taken as different ones: "
            f"{shown}{more}. If they mean the same, write them alike."
        )
    return list(map(LabelWarning, warnings))


def _quoted(value: Any) -> str:
    text = str(value)
    return text if text.replace("_", "").replace("-", "").isalnum() else f"{text!r}"


@dataclass(frozen=True)
class LabelsRead:
    """Labels that were read, and what the user should hear about them."""

    labels: Labels
    # Counts: labels of each place, those that replace others, votes, entries without answer
    notes: list[str] = field(default_factory=list)
    warnings: list[LabelWarning] = field(default_factory=list)  # IDs of no row, or of several
    marked: bool = False  # whether the user has said what marks rows without a label

    def suspicions(self, *, all_labelled: bool = True) -> list[LabelWarning]:
        """The warnings, labels that may mean none, and (if wanted) that no row is unlabelled."""
        labels = self.labels
        warnings = [*self.warnings, *suspicions(labels, names=not self.marked)]
        if all_labelled and len(labels.rows) == labels.n_rows:
            text = (
                f"every one of the {labels.n_rows:,} rows has a label, so there is none to find "
                "one for. If one of the labels means that a row has none, give None or -1 for "
                "it in Python, or --unlabelled VALUE on the command line."
            )
            warnings.append(LabelWarning(text))
        return warnings


# --------------------------------------------------------------------------------------------------
# Adding labels to those that are known, correcting them, and taking them back.


def merged_labels(labels: Labels, rows: Any, values: Any) -> tuple[Labels, Labels | None]:
    """Join labels (q,) of rows (q,) to those that are known; -1, None, NaN or "" takes one away.

    Also returns the rows that had no label before; None when an earlier label changed or went.
    """
    if labels.distribution is not None:
        raise ParameterError(
            "update_labels takes one label a row, but this model was fitted on label "
            "distributions; fit it again with all labels."
        )
    indices, given = np.atleast_1d(np.asarray(rows)), np.atleast_1d(label_array(values))
    if indices.size and (indices.ndim != 1 or indices.dtype.kind not in "iu"):
        raise ParameterError(
            f"rows must be row numbers, one-dimensional and whole; got an array of "
            f"{indices.dtype} with shape {indices.shape}."
        )
    wrong = indices[(indices < 0) | (indices >= labels.n_rows)] if indices.size else indices
    if wrong.size:
        raise ParameterError(
            f"rows holds {wrong[0]:,}, but the training rows are numbered 0 to "
            f"{labels.n_rows - 1:,}."
        )
    indices = indices.astype(np.int64).ravel()
    distinct, counts = np.unique(indices, return_counts=True)
    if len(distinct) < len(indices):
        raise ParameterError(
            f"rows holds row {distinct[counts > 1][0]:,} more than once; give each row once."
        )
    if given.ndim != 1:
        raise LabelError(f"labels must be one-dimensional; got shape {given.shape}.")
    if len(given) != len(indices):
        raise LabelError(
            f"{len(given):,} labels were given for {len(indices):,} rows; give one label a row."
        )
    order = np.argsort(indices, kind="stable")
    indices, given = indices[order], given[order]
    stays = ~np.isin(labels.rows, indices)  # what is said now replaces what was said before
    named = ~unlabelled(given)
    all_rows = np.concatenate([labels.rows[stays], indices[named]])
    all_values = _joined(labels.classes[labels.codes[stays]], given[named])
    order = np.argsort(all_rows, kind="stable")
    merged = labels_from_pairs(all_rows[order], all_values[order], labels.n_rows)
    if labels.weights is not None:  # new labels count once
        weights = np.concatenate([labels.weights[stays], np.ones(int(named.sum()))])
        merged = replace(merged, weights=weights[order])
    fresh = ~np.isin(merged.rows, labels.rows, assume_unique=True)
    if not stays.all():  # did every earlier label stay, and stay the same?
        if (~fresh).sum() < len(labels.rows):
            return merged, None
        now = merged.take(np.flatnonzero(~fresh))
        same = labels.classes[labels.codes] == now.classes[now.codes]
        if labels.weights is not None and now.weights is not None:
            same = np.all(same) and (labels.weights == now.weights)
        if not np.all(same):
            return merged, None
    return merged, merged.take(np.flatnonzero(fresh))


def _joined(known: np.ndarray, given: np.ndarray) -> np.ndarray:
    """One array of labels, of the type of the known ones where that holds the new ones."""
    if len(given) == 0 or known.dtype.kind == "O":
        return np.concatenate([known, given.astype(known.dtype)]) if len(given) else known
    plain = np.array(given.tolist()) if given.dtype.kind == "O" else given
    is_text = plain.dtype.kind in "US"
    if is_text == (known.dtype.kind in "US") and plain.dtype.kind != "O":
        if is_text:
            return np.concatenate([known, plain])
        if (known.dtype.kind in "mM") != (plain.dtype.kind in "mM"):
            raise LabelError(
                f"the new labels are of type {plain.dtype} and the classes of type {known.dtype}; "
                "give labels of the same kind."
            )
        with np.errstate(invalid="ignore"):
            cast = plain.astype(known.dtype)
        return np.concatenate([known, cast if (cast == plain).all() else plain])
    return np.concatenate([known.astype(object), given.astype(object)])


# --------------------------------------------------------------------------------------------------
# What the values of y mean: which are no labels, and which are distributions.


def label_array(y: Any) -> np.ndarray:
    """Labels of any library as one array that keeps their type.

    NumPy has no missing integer, so a column of integers of which some are missing becomes
    floating-point numbers on its way from most libraries. Here they are integers again, with -1,
    which means "no label", where one is missing; other floating-point numbers stay as they are.
    """
    # A column of integers with gaps, from a library that knows them.
    library, dtype = type(y).__module__.partition(".")[0], getattr(y, "dtype", None)
    if library == "pandas" and not isinstance(dtype, np.dtype):
        if getattr(dtype, "kind", None) in ("i", "u") and y.isna().any():
            return np.asarray(y.to_numpy(dtype=np.int64, na_value=-1))
    elif library == "polars" and dtype is not None and hasattr(dtype, "is_integer"):
        if dtype.is_integer() and y.null_count():
            return np.asarray(y.cast(int).fill_null(-1).to_numpy())
    elif library == "pyarrow" and str(getattr(y, "type", "")).startswith(("int", "uint")):
        if y.null_count:
            return np.asarray(y.cast("int64").fill_null(-1))
    elif isinstance(y, np.ma.MaskedArray):  # DuckDB's fetchnumpy; NumPy would forget the mask
        masked, y = np.ma.getmaskarray(y), np.array(y.data, dtype=object)
        y[masked] = None
    plain = on_host(y, "y")
    values = np.asarray(plain)
    if values.dtype.kind in "US" and not hasattr(plain, "dtype"):
        return np.asarray(y, dtype=object)  # a list of text and NaN or -1 would all become text
    if values.dtype.kind == "O":
        kinds = {type(value) for value in values.ravel()}
        if type(None) in kinds and kinds <= {float, np.float64, np.float32, type(None)}:
            values = values.astype(np.float64)
    absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if absent.any() and (values[~absent] == np.floor(values[~absent])).all():
        with np.errstate(invalid="ignore"):
            whole = np.where(absent, -1, values).astype(np.int64)
        if (whole[~absent] == values[~absent]).all():  # neither infinite nor out of range
            return whole
    return values


def unlabelled(values: np.ndarray) -> np.ndarray:
    """Tell which entries mean "no label".  (n,) → (n,) of bool."""
    kind = values.dtype.kind
    if kind == "b":
        return np.zeros(len(values), dtype=bool)
    if kind in "iu":
        return np.asarray(values == -1)
    if kind == "f":
        return np.asarray(np.isnan(values) | (values == -1))
    if kind in "US":
        return np.isin(values, np.array(["", "-1"], dtype=values.dtype.kind))
    return np.fromiter(map(_means_unlabelled, values), dtype=bool, count=len(values))


def _means_unlabelled(value: Any) -> bool:
    if value is None or value is False or value is True:
        return value is None
    if isinstance(value, str):
        return value in ("", "-1")
    try:
        return bool(value != value) or bool(value == -1)
    except TypeError:  # pandas.NA refuses to be compared
        return True


def n_columns(y: Any) -> int:
    """Columns of a table of label distributions; 1 for anything else."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple, np.ndarray)):
        shape = np.shape(y)
    return int(shape[1]) if len(shape) == 2 else 1


def as_column(y: Any) -> np.ndarray:
    """One-dimensional array of labels; a single column is accepted, as scikit-learn does."""
    if y is None:
        raise LabelError(
            "fit requires y to be passed, but the target y is None; give one label a row, "
            "with -1, None, NaN or '' where the label is unknown."
        )
    values = label_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        import warnings

        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; "
            "change the shape of y to (n_samples,), for example with ravel().",
            DataConversionWarning,
            stacklevel=5,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise LabelError(f"y must be one-dimensional, one label a row; got shape {values.shape}.")
    if values.dtype.kind == "c":
        raise LabelError("Complex data not supported as labels; use integers or text.")
    return values


def _narrow(values: list[Any]) -> np.ndarray:
    """An array of the values' own type where they share one, else of objects."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {str, int, bool, float}:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def class_names(classes: Any, n_classes: int) -> np.ndarray:
    """Check the names of the columns of label distributions."""
    if classes is None:
        return np.arange(n_classes)
    values = np.asarray(classes)
    if values.dtype.kind in "US" and not hasattr(classes, "dtype"):
        values = _narrow(list(classes))
    if values.shape != (n_classes,) or len(set(values.tolist())) < n_classes:
        raise ParameterError(
            f"classes={classes!r} cannot be used; give {n_classes} different names, one for each "
            "column of y."
        )
    return values


def read_distributions(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a table that hold a label distribution, (l,), and these, adding up to 1, (l, c)."""
    table = y.tocsr() if sparse.issparse(y) else np.asarray(on_host(y, "y"))
    if table.shape[0] != n_rows:
        raise LabelError(
            f"y has {table.shape[0]:,} rows of label distributions but X has {n_rows:,} rows; give "
            "one distribution a row, with zeros or NaN where the label is unknown."
        )
    if table.dtype.kind not in "biuf":
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError):
            raise LabelError(
                f"y has shape {table.shape} and holds {table.dtype}; a table is taken as label "
                "distributions, which are numbers of 0 or more. Give one label a row otherwise."
            ) from None
    rows, parts = [np.empty(0, dtype=np.int64)], [np.empty((0, table.shape[1]))]
    for start in range(0, n_rows, PIECE_ROWS):  # never a second table of all rows
        piece = table[start : start + PIECE_ROWS]
        indices = _distribution_rows(piece, start)
        known = piece[indices]
        rows.append(start + indices)
        parts.append(np.asarray(known.toarray() if sparse.issparse(known) else known, np.float64))
    known_rows, shares = np.concatenate(rows), np.concatenate(parts)
    sums = shares.sum(axis=1, keepdims=True)
    # Zeros and ones alone are classes or tags: a table of shares or votes has other numbers too.
    if (sums > 1).any() and ((shares == 0) | (shares == 1)).all():
        several = np.flatnonzero(sums > 1)
        raise LabelError(
            f"y holds zeros and ones only, and {len(several):,} of {len(known_rows):,} labelled "
            f"rows have several ones, such as row {known_rows[several[0]]:,}. Give one class a "
            "row; divide each row by its sum for a distribution; several tags a row are not "
            "supported yet."
        )
    return known_rows, shares / sums


def _distribution_rows(piece: Any, start: int) -> np.ndarray:
    """Rows of a piece of a table that hold a label distribution."""
    if sparse.issparse(piece):
        piece = piece.copy()
        piece.eliminate_zeros()
        used = np.flatnonzero(np.diff(piece.indptr))
        return used[_distribution_rows(piece[used].toarray(), start)] if len(used) else used
    empty = np.isnan(piece).all(axis=1) | (piece == 0).all(axis=1)
    bad = ~empty & (~np.isfinite(piece) | (piece < 0)).any(axis=1)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise LabelError(
            f"y has no label distribution in row {start + first:,}: {piece[first].tolist()[:10]}. "
            "Give numbers of 0 or more for each class, or zeros or NaN throughout where the label "
            "is unknown."
        )
    return np.flatnonzero(~empty)


def given_weights(sample_weight: Any, rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Check weights and return those of the labelled rows.  (l,)."""
    sample_weight = on_host(sample_weight, "sample_weight")
    try:
        values = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim == 0 and np.isfinite(values):
        values = np.broadcast_to(values, (n_rows,))
    if values.shape != (n_rows,):
        raise LabelError(
            f"sample_weight has shape {np.shape(sample_weight)}, but must be 1D with {n_rows:,} "
            "numbers, one a row."
        )
    check_weights(values[rows], rows)
    return values[rows]


def check_weights(weights: np.ndarray, rows: np.ndarray) -> None:
    """Refuse weights below zero, NaN, infinity, and what is as good as that in sums of squares."""
    bad = np.flatnonzero(~((weights <= MOST_WEIGHT) & (weights >= 0)))
    if len(bad):
        raise LabelError(
            f"the label of row {int(rows[bad[0]]):,} has weight {float(weights[bad[0]])}; give "
            f"finite weights from 0 (which leaves the label out) to {MOST_WEIGHT:g}."
        )
