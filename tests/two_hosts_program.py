"""Fits on two hosts: two_hosts_program.py FOLDER HOST=ADDRESS HOST=ADDRESS.

The scheduler and one worker are on the first, the other worker is on the second; the client is
here. Writes what it found to ``found.npz`` in the folder.
"""

import sys
from pathlib import Path

import numpy as np

from biglp._engines import make_engine
from clusters import DaskProcesses
from everywhere_program import fit_all


def main(folder: Path, *hosts: str) -> None:
    names, (first, second) = zip(*(host.split("=") for host in hosts), strict=True)
    inside = [("ip", "netns", "exec", name) for name in names]
    prefixes = [inside[0], inside[0], inside[1]]
    with (
        DaskProcesses(folder, 2, prefixes, [first, first, second]) as processes,
        make_engine(processes.address) as engine,
    ):
        engine.client.wait_for_workers(2, timeout=60)
        addresses = {address.split(":")[1] for address in engine.client.nthreads()}
        assert addresses == {f"//{first}", f"//{second}"}
        np.savez(folder / "found.npz", **fit_all(engine, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
