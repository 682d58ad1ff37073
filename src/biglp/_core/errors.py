"""Everything biglp raises or warns, as one tree.

::

    BigLPError
    ├── InputError            (ValueError)   rows, labels or parameters that cannot be used
    │   ├── BadRowsError                     NaN, infinity, wrong shape
    │   ├── LabelError                       no labels, one class, wrong length
    │   └── ParameterError                   a parameter outside its range
    ├── MemoryBudgetError     (MemoryError)  the work does not fit the memory that was given
    ├── ModelFileError        (ValueError)   a model file that is damaged or of another version
    ├── CheckpointError       (ValueError)   a run that cannot be resumed
    ├── OutputError           (OSError)      a file that cannot be written
    ├── DownloadError         (OSError)      a file that cannot be fetched, or is not the right one
    ├── StoreError            (OSError)      an object store that cannot be reached, or refuses
    ├── EngineError           (RuntimeError) workers that are lost, out of reach or disagree
    └── MissingExtraError     (ImportError)  an optional part that is not installed

    BigLPWarning (UserWarning)
    ├── InputWarning                         files that were perhaps not read as they were meant
    ├── DegreeWarning                        rows whose degree had to be repaired
    ├── UnreachedRowsWarning                 rows that no label reaches
    ├── UnlikeLabelsWarning                  a group of rows unlike all labelled ones
    ├── LabelWarning                         labels that may mean "no label", or are of no row
    ├── LabelRegionWarning                   labels from one region of the rows only
    ├── DriftWarning                         new rows unlike the training rows
    ├── LandmarkWarning                      fewer landmarks than asked for
    ├── CardMemoryWarning                    a GPU with less memory than was planned
    ├── CardKernelWarning                    a kernel that a GPU cannot use
    └── StoppedShortWarning                  an iteration that ended before its tolerance

    NonFiniteRowsError (Exception)           never seen outside: a fit catches and explains it

Every message says what was wrong, what was found, what is allowed and what to do.
"""

from __future__ import annotations

import errno
import sys
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any


class BigLPError(Exception):
    """Base of every error raised on purpose by biglp."""


class InputError(BigLPError, ValueError):
    """The rows, labels or parameters cannot be used."""


class NonFiniteRowsError(Exception):
    """A block holds NaN, infinity or values too large to square; caught and explained in fit."""


class BadRowsError(InputError):
    """The feature rows cannot be used.

    Attributes
    ----------
    rows : tuple of int
        Numbers of the first of them, where known.
    """

    rows: tuple[int, ...] = ()


class LabelError(InputError):
    """The labels cannot be used."""


class ParameterError(InputError):
    """A parameter is outside its allowed range."""


class MemoryBudgetError(BigLPError, MemoryError):
    """The work does not fit the memory that was given.

    Attributes
    ----------
    least : int or None
        Bytes of the smallest budget that works, where it is known: that of ``memory``.
    """

    def __init__(self, message: str, *, least: int | None = None) -> None:
        super().__init__(message)
        self.least = least

    def __reduce__(self) -> Any:
        """Go to another process whole: what pickles errors with their traceback would not."""
        return partial(type(self), least=self.least), self.args


class ModelFileError(BigLPError, ValueError):
    """A model file is damaged, not a model file, or of an unknown version."""


class CheckpointError(BigLPError, ValueError):
    """An interrupted run cannot be resumed."""


DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system calls a disk, a quota or a file that can take no more."""


class OutputError(BigLPError, OSError):
    """An output file cannot be written."""


class DownloadError(BigLPError, OSError):
    """A file cannot be fetched, or what was fetched is not what was expected."""


class StoreError(BigLPError, OSError):
    """An object store cannot be reached, or does not let a file be read or written."""


class EngineError(BigLPError, RuntimeError):
    """The processes that do the work cannot be reached, were lost, or do not agree."""


class MissingExtraError(BigLPError, ImportError):
    """An optional dependency is not installed."""


class BigLPWarning(UserWarning):
    """Base of every warning given by biglp."""


class InputWarning(BigLPWarning):
    """Files of rows were perhaps not read as they were meant."""


class DegreeWarning(BigLPWarning):
    """Some rows had a degree of zero or less, which was repaired."""


class UnreachedRowsWarning(BigLPWarning):
    """Some rows are tied to no label through the graph."""


class UnlikeLabelsWarning(BigLPWarning):
    """A group of rows is unlike all labelled ones: a class may be without labels."""


class LabelWarning(BigLPWarning):
    """Labels that may mean "no label", or that name rows which are not there or there twice."""


class LabelRegionWarning(BigLPWarning):
    """The labelled rows come from one region; nothing is known about the others."""


class DriftWarning(BigLPWarning):
    """New rows are unlike the training rows."""


class LandmarkWarning(BigLPWarning):
    """Fewer landmarks were used than asked for."""


class CardMemoryWarning(BigLPWarning):
    """A GPU had less memory left than was planned; the work went on in another way."""


class CardKernelWarning(BigLPWarning):
    """A kernel could not be used on a GPU; plain torch did its work."""


if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

    class StoppedShortWarning(BigLPWarning, ConvergenceWarning):
        """An iteration ended before it reached its tolerance."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn about the line that called biglp, however deep inside it the reason was found."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("biglp."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


def __getattr__(name: str) -> Any:
    """Make the one class that needs scikit-learn when it is asked for.

    Loading scikit-learn takes a second or more and 70 MB, which the command line does without.
    """
    if name != "StoppedShortWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    about = {"__module__": __name__, "__doc__": "An iteration ended before its tolerance."}
    made = type(name, (BigLPWarning, ConvergenceWarning), about)
    globals()[name] = made
    return made
