"""Labels and measured targets: in memory, in files and tables, joined by ID, and in doubt."""

from __future__ import annotations

from typing import Any

_FILES = {
    "LabelInput": "reading",
    "Labels": "labels",
    "OwnLabels": "labels",
    "encode_labels": "labels",
    "encode_targets": "targets",
    "find_doubts": "doubts",
    "label_array": "labels",
    "labels_from_pairs": "labels",
    "suspicions": "labels",
}
__all__ = list(_FILES)


def __getattr__(name: str) -> Any:  # labels in memory load nothing of files
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
