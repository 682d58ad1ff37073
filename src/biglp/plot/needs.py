"""Whether matplotlib is there."""

from __future__ import annotations

from importlib.util import find_spec

from biglp._core.errors import MissingExtraError


def require_matplotlib(what: str) -> None:
    """Explain that a plot needs matplotlib.

    Parameters
    ----------
    what : str
        What is to be drawn, for the message.

    Raises
    ------
    MissingExtraError
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            f"{what}: plots need matplotlib, which is not installed; install it with: "
            'pip install "biglp[plot]"'
        )
