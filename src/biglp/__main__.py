"""The command ``biglp``, and ``python -m biglp``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; what needs none of it is answered before it is loaded."""
    if sys.argv[1:] == ["--version"]:
        from biglp._version import __version__

        sys.stdout.write(f"biglp {__version__}\n")
        return
    from biglp.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
