"""A fit whose memory is watched from outside: memory_program.py ENGINE ROWS FEATURES JSON.

It is refused for 20 MB first, and runs with what the refusal names. Prints one line of JSON: that
budget (in MB), the rows that were labelled, and the bytes of the rows and labels handed over.
"""

import json
import re
import sys
import warnings

import numpy as np

from biglp import LowRankLabelPropagation
from biglp._core import BigLPWarning, MemoryBudgetError
from biglp._engines import ENGINES


def main(engine: str, n_rows: str, n_features: str, parameters: str) -> None:
    warnings.simplefilter("ignore", BigLPWarning)
    shape = int(n_rows), int(n_features)
    simulated = f"sim:{shape[0]}x{shape[1]}"
    given = 0
    X = simulated
    rng = np.random.default_rng(0)
    y = np.where(rng.random(shape[0]) < 0.005, rng.integers(0, 3, shape[0]), -1)
    if engine == "threads":
        X = rng.standard_normal(shape, dtype=np.float32)  # at once: what it takes is measured too
        given = X.nbytes
    given += y.nbytes
    chosen = engine
    if engine == "dask":
        chosen = ENGINES["dask"](n_workers=2)
    model = LowRankLabelPropagation(**json.loads(parameters), engine=chosen, memory="20MB")
    try:
        try:
            model.fit(X, y)
        except MemoryBudgetError as error:
            least = int(re.search(r"--memory (\d+)MB", str(error))[1])
        model.set_params(memory=f"{least}MB").fit(X, y)
        found = {"rows": len(model.transduction_), "least": least}
    finally:
        if engine == "dask":
            chosen.close()
    is_root = True
    if engine == "mpi":
        from mpi4py import MPI

        is_root = MPI.COMM_WORLD.Get_rank() == 0
        given *= MPI.COMM_WORLD.Get_size()
    if is_root:
        print(json.dumps({**found, "given_bytes": given}))


if __name__ == "__main__":
    main(*sys.argv[1:])
