"""A program for mpiexec: one scenario, by name, on every rank; test_engines_mpi.py looks on."""

import os
import signal
import sys
import time
from functools import partial

import numpy as np

from biglp._core import BadRowsError, BigLPError, LogProgress, cut_rows
from biglp._engines import ENGINES, end_together, make_engine
from biglp._graph import Lloyd
from biglp._rows import as_source

ROWS = np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32)


def column_sums(block):
    return (block.rows().sum(0),)


def slow(block):
    print("a block", file=sys.stderr, flush=True)
    time.sleep(0.5)
    return (np.ones(2),)


def bad(block, engine):
    if engine.rank == 1:
        raise BadRowsError("row 7 is NaN")
    return slow(block)


def killed(block, engine):
    if engine.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return slow(block)


def say(engine, *words):
    engine.once(lambda: print(*words, flush=True))


def all_well(engine, blocks):
    from mpi4py import MPI

    Lloyd(engine, ROWS, max_iter=2, tol=-1.0).run(blocks, ROWS[:5])
    many = cut_rows(as_source(np.tile(ROWS, (20, 1))), 10)
    for label, chosen in (("few", blocks[:2]), ("many", many)):
        engine.sum_blocks(lambda block: (np.ones((30, 20)), np.ones(7)), chosen, label=label)
    sent, one_each = dict(engine.bytes_sent), cut_rows(as_source(ROWS[: engine.n_ranks]), 1)
    for numbers in engine.map_blocks(lambda block: sent, one_each):
        say(engine, "sent", numbers)
    for threads in engine.map_blocks(lambda block: engine.n_threads, one_each):
        say(engine, "threads", threads)
    assert (engine.n_machines, engine.n_sharing) == (1, engine.n_ranks)
    engine.progress = LogProgress()
    engine.sum_blocks(column_sums, blocks, label="sweep")
    halves = MPI.COMM_WORLD.Split(engine.rank % 2)
    with make_engine(halves) as half:
        (total,) = half.sum_blocks(column_sums, blocks)
    halves.Free()
    (whole,) = engine.sum_blocks(column_sums, blocks)
    assert total.tobytes() == whole.tobytes()


def disagree(engine, blocks):
    shorter = cut_rows(as_source(ROWS[: 600 - 10 * engine.rank]), 10)
    other = cut_rows(as_source(ROWS + engine.rank), 10)
    for attempt in (
        partial(engine.sum_blocks, slow, shorter),
        partial(engine.sum_blocks, slow, other),
        partial(engine.map_blocks, slow, blocks[:2], label=f"step {engine.rank}"),
        partial(engine.map_blocks, partial(bad, engine=engine), blocks),
    ):
        try:
            attempt()
        except BigLPError as error:
            say(engine, type(error).__name__, error, error.__notes__[0].splitlines()[0])


def told_to_end(moment, number, output):
    from biglp.cli import main as command

    module = sys.modules[ENGINES["mpi"].__module__]
    load = module.load_mpi

    def told():
        found = load() if moment == "after" else None
        os.kill(os.getpid(), getattr(signal, number))
        return found or load()

    if os.environ.get("PMI_RANK") == "1":
        module.load_mpi = told
    sys.argv = ["biglp", "fit", "sim:2Kx5", "-o", output, "--engine", "mpi", "-q"]
    command()


def main(scenario):
    if scenario.startswith("told-"):
        told_to_end(scenario.removeprefix("told-"), *sys.argv[2:])
        return
    engine = make_engine("mpi")
    blocks = cut_rows(as_source(ROWS), 10)
    many = cut_rows(as_source(ROWS), 1)  # work for longer than the test gives a job
    if scenario == "all-well":
        all_well(engine, blocks)
    elif scenario == "disagree":
        disagree(engine, blocks)
    elif scenario == "fail-in-block":
        engine.sum_blocks(partial(bad, engine=engine), blocks)
    elif scenario == "fail-as-command":
        try:
            engine.sum_blocks(partial(bad, engine=engine), blocks)
        except BadRowsError as error:
            message = f"Error: {error}"
            end_together(lambda: print(message, file=sys.stderr))
            raise SystemExit(2) from None
    elif scenario == "killed":
        engine.sum_blocks(partial(killed, engine=engine), many)


if __name__ == "__main__":
    main(sys.argv[1])
