"""Semi-supervised classification for 10⁵ to 10⁹ rows."""

from __future__ import annotations

from biglp._version import __version__

__all__ = ["__version__"]
