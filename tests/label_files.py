"""Labels of files as arrays, whatever their format."""

import numpy as np

from biglp._labels import LabelInput


def read_labels(path, n_rows=None, *, column=None, unlabelled=None, sparse=False):
    place = {"rows": None, "labels": (path,)}
    if column is not None:
        place = {"rows": path, "label_column": column}
    merged, n_rows, _ = LabelInput(**place, unlabelled=unlabelled).pairs(n_rows)
    if sparse:
        return merged.rows, merged.values
    text = merged.values.dtype == object
    labels = np.full(n_rows, None if text else -1, dtype=object if text else np.int64)
    labels[merged.rows] = merged.values
    return labels
