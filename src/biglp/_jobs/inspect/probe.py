"""A first look at some rows of an input: what reading it costs, and rows to try a method on."""

from __future__ import annotations

from biglp._jobs.inputs import Inputs
from biglp._sources import ReadOptions
from biglp._sources.damaged import explained_reading
from biglp._sources.probe import Probe

__all__ = ["Probe", "probe"]


def probe(inputs: Inputs, options: ReadOptions, wanted_rows: int = 1 << 19) -> Probe:
    """Look at an input without converting it.

    Parameters
    ----------
    inputs : Inputs
        The rows.
    options : ReadOptions
        How to read them.
    wanted_rows : int
        Rows to try methods on, where they need not be held in memory.
    """
    with explained_reading(inputs.named.files[0]):
        return inputs.named.format.probe(inputs.named.files, options, wanted_rows)
