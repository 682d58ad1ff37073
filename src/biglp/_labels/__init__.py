"""Labels and measured targets: in memory, in files and tables, joined by ID, and in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biglp._labels.doubts import find_doubts
    from biglp._labels.labels import Labels, encode_labels, labels_from_pairs, suspicions
    from biglp._labels.reading import LabelInput
    from biglp._labels.targets import encode_targets
    from biglp._labels.values import label_array

__all__ = [
    "LabelInput",
    "Labels",
    "encode_labels",
    "encode_targets",
    "find_doubts",
    "label_array",
    "labels_from_pairs",
    "suspicions",
]

_FILES = {
    "LabelInput": "reading",
    "Labels": "labels",
    "encode_labels": "labels",
    "encode_targets": "targets",
    "find_doubts": "doubts",
    "label_array": "values",
    "labels_from_pairs": "labels",
    "suspicions": "labels",
}


def __getattr__(name: str) -> Any:  # labels in memory load nothing of files
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
