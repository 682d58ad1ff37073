"""Run the command line as ``python -m biglp``."""

from biglp.cli import main

main()
