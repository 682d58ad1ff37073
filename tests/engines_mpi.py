"""A program for mpiexec: one scenario, by name. Every rank runs it; test_engines_mpi.py looks on."""

import os
import signal
import sys
import time

import numpy as np

from biglp._blocks import cut_rows
from biglp._engines import end_together, make_engine
from biglp._errors import BadRowsError
from biglp._lowrank.kmeans import lloyd
from biglp._progress import LogProgress
from biglp._sources import as_source

ROWS = np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32)


def main(scenario):
    engine = make_engine("mpi")
    blocks = cut_rows(as_source(ROWS), 10)

    def slow(block):
        time.sleep(1.0)
        return (np.ones(2),)

    def bad(block):
        if engine.rank == 1:
            raise BadRowsError("row 7 is NaN")
        return slow(block)

    def killed(block):
        if engine.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return slow(block)

    if scenario == "fail-in-block":
        engine.sum_blocks(bad, blocks)
    elif scenario == "fail-in-block-caught":
        try:
            engine.map_blocks(bad, blocks)
        except BadRowsError as error:
            notes = str(error.__notes__[0]).splitlines()[0]
            engine.map_blocks(lambda block: 0, blocks)
            engine.once(lambda: print(f"caught: {error} {notes}"))
    elif scenario == "fail-alone":
        if engine.rank == 1:
            raise BadRowsError("this rank has no such file")
        engine.sum_blocks(slow, blocks)
    elif scenario == "fail-all":
        raise BadRowsError("alpha=2 is not allowed")
    elif scenario == "fail-as-command":
        try:
            engine.sum_blocks(bad, blocks)
        except BadRowsError as error:
            message = f"Error: {error}"
            end_together(lambda: print(message, file=sys.stderr))
            raise SystemExit(2) from None
    elif scenario == "killed":
        engine.sum_blocks(killed, blocks)
    elif scenario == "other-length":
        blocks = cut_rows(as_source(ROWS[: 600 - 10 * engine.rank]), 10)
        engine.sum_blocks(slow, blocks[:6])
    elif scenario == "other-rows":
        blocks = cut_rows(as_source(ROWS + engine.rank), 10)
        engine.sum_blocks(slow, blocks[:6])
    elif scenario == "other-step":
        engine.map_blocks(slow, blocks[:6], label=f"step {engine.rank}")
    elif scenario == "numbers":
        lloyd(engine, blocks, ROWS[:5], ROWS, max_iter=2, tol=-1.0)
        few, many = blocks[:2], cut_rows(as_source(np.tile(ROWS, (20, 1))), 10)
        for label, chosen in (("few", few), ("many", many)):
            engine.sum_blocks(lambda block: (np.ones((30, 20)), np.ones(7)), chosen, label=label)
        sent = dict(engine.bytes_sent)
        for rank, (numbers, threads) in enumerate(
            engine.map_blocks(
                lambda block: (sent, engine.n_threads),
                cut_rows(as_source(ROWS[: engine.n_ranks]), 1),
            )
        ):
            engine.once(lambda r=rank, n=numbers, t=threads: print("rank", r, n, "threads", t))
    elif scenario == "progress":
        engine.progress = LogProgress()
        engine.sum_blocks(lambda block: (np.ones(2),), blocks, label="sweep")
    elif scenario == "own-communicator":
        from mpi4py import MPI

        halves = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
        with make_engine(halves) as half:
            (total,) = half.sum_blocks(lambda block: (block.rows().sum(0),), blocks)
        halves.Free()
        (whole,) = engine.sum_blocks(lambda block: (block.rows().sum(0),), blocks)
        assert total.tobytes() == whole.tobytes()
        engine.once(lambda: print("same"))


if __name__ == "__main__":
    main(sys.argv[1])
