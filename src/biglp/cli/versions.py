"""What ``biglp --version --verbose`` prints: all that a report of a fault has to name."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from biglp._version import __version__

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow")
EXTRAS = {
    "gpu": ["torch"],
    "mpi": ["mpi4py"],
    "dask": ["distributed"],
    "plot": ["matplotlib"],
    "hdf5": ["h5py"],
    "zarr": ["zarr"],
    "text": ["tokenizers", "biglp-text-en"],
    "lake": ["deltalake", "pyiceberg"],
    "label": ["starlette", "uvicorn"],
}
"""What the extras for users install."""


def in_words() -> str:
    """Versions, which loops run, and which extras are installed."""
    from biglp._compiled import native  # loads NumPy, which a plain --version need not

    lines = [
        f"biglp {__version__}",
        f"Python {platform.python_version()}, {platform.platform()}",
        f"loops: {native.in_words()}",
        *map(_with_version, LIBRARIES),
    ]
    for extra, packages in EXTRAS.items():
        found = ", ".join(_with_version(name) for name in packages)
        missing = "not installed" in found
        lines.append(f"extra {extra}: {found}" + missing * f"; pip install 'biglp[{extra}]'")
    return "\n".join(lines)


def _with_version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} is not installed"
