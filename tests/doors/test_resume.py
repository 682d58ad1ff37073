"""Runs that are killed, interrupted or refused: what is kept, what goes on, what is advised."""

import json
import os
import pickle
import re
import signal
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, LabelWarning, MemoryBudgetError, rows_per_block
from biglp._files import RunFolder, hold, lock_file, remove_held
from biglp._fit import Pipeline
from biglp._graph import AnswerSweep
from biglp._version import __version__
from cli_tools import Process, done, failed, label_slowly, run
from clusters import eventually
from row_files import write

ROWS, FEATURES = 300_000, 24
OPTIONS = ("--factor", "anchors", "-k", "150", "--threads", "1")
FREQUENT = {"biglp._files.runfolder:JOURNAL_SECONDS": 0.02}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    done("simulate", ROWS, FEATURES, "-o", folder / "rows.npy", "-q", "--labels-per-class", 20)
    rows, labels = np.load(folder / "rows.npy"), np.load(folder / "rows.labels.npy")
    columns = {f"x{i}": pa.array(rows[:, i]) for i in range(FEATURES)}
    table = pa.table(columns | {"y": pa.array(labels, mask=labels < 0)})
    pq.write_table(table, folder / "rows.parquet", use_dictionary=False)
    return folder


def command(data: Path, kind: str) -> tuple[object, ...]:
    where = ("--labels", data / "rows.labels.npy") if kind == "npy" else ("--label-column", "y")
    return ("fit", data / f"rows.{kind}", *where, *OPTIONS, "--confidence", "-o", "out")


@pytest.fixture(scope="module", params=["npy", "parquet"])
def whole(request, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    process = Process(folder, *command(data, request.param), patches=FREQUENT)
    assert process.wait(120) == 0, process.stderr
    return request.param, folder / "out"


TIMED = ("summary.json", "report.html")
"""Results that name the time."""
RESULTS = ["labels.npy", "model.biglp", "report.html", "summary.json"]
LINEAR = ("fit", "sim:2Kx5", "-o", "out", "--factor", "linear")


def names(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def same_results(one: Path, other: Path) -> None:
    assert names(one) == names(other)
    for name in {*names(one)} - {*TIMED}:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.fixture
def failing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("biglp._files.runfolder.JOURNAL_SECONDS", 0.0)
    made = AnswerSweep.write_block

    def fail(after, *arguments):
        calls = []

        def write_block(sweep, block, **options):
            calls.append(block.start)
            if len(calls) > after:
                raise OSError(28, "No space left on device", "somewhere")
            return made(sweep, block, **options)

        with monkeypatch.context() as patch:
            patch.setattr(AnswerSweep, "write_block", write_block)
            return failed(4, *arguments)

    return fail


def test_finished_work_is_not_done_again(data, failing):
    """A run that fails in its last sweep resumes there, with the rows that were written."""
    message = failing(5, *command(data, "npy"))
    assert "Kept in out/.biglp-run: landmarks, Gram sums, propagation" in message
    assert "--resume" in message
    assert not Path("out/labels.npy").exists()
    summary = json.loads(done(*command(data, "npy"), "--resume", "--json").stdout)
    assert [step["step"] for step in summary["steps"]] == ["labels"]
    assert summary["steps"][0]["rows"] < ROWS
    assert sum(summary["found"].values()) == ROWS
    assert summary["resumed"]


def test_predict_resumes(data, failing, monkeypatch):
    # Many blocks of few rows.
    monkeypatch.setattr(f"{rows_per_block.__module__}.TARGET_BLOCK_BYTES", 1 << 20)
    done("fit", "sim:2Kx24", "-o", "model", "--factor", "linear")
    predict = ("predict", "model/model.biglp", data / "rows.npy", "-o", "new.npy")
    done(*predict)
    reference = Path("new.npy").read_bytes()
    Path("new.npy").unlink()
    failing(20, *predict)
    assert not Path("new.npy").exists()
    summary = json.loads(done(*predict, "--resume", "--json").stdout)
    assert summary["steps"][0]["rows"] < ROWS
    assert Path("new.npy").read_bytes() == reference


def test_interrupted_terminated_and_killed(whole, data, tmp_path):
    """Nothing has its final name then, and the same bytes come in the end."""
    kind, reference = whole
    slow = FREQUENT | {"biglp._graph.graph:AnswerSweep.write_block": label_slowly}
    signals = ((signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "term"))
    for number, code, word in (*signals, (signal.SIGKILL, -signal.SIGKILL, "killed")):
        folder = tmp_path / word
        folder.mkdir()
        process = Process(folder, *command(data, kind), patches=slow)
        eventually((folder / "out" / ".biglp-run" / "decision.npz").stat)
        assert process.signal(number) == code, process.stderr
        assert names(folder / "out") == [".biglp-run"]
        for told in (word, "Kept in out/.biglp-run: ", "--resume") if code > 0 else ():
            assert told in process.stderr
        assert "Traceback" not in process.stderr
        assert Process(folder, *command(data, kind), "--resume").wait(120) == 0
        same_results(reference, folder / "out")


def test_another_run_is_refused(failing, tmp_path):
    small, labels = tmp_path / "small.npy", tmp_path / "small.labels.npy"
    done("simulate", 2000, 5, "-o", small, "-q")
    fit = ("fit", small, "--labels", labels, "-o", "out", "--factor", "nystrom")
    message = failing(0, *fit)
    assert "Kept in out/.biglp-run: landmarks, degrees, Gram sums, propagation" in message
    assert "unfinished run" in failed(2, *fit)
    message = failed(5, *fit, "--alpha", "0.5", "--resume")
    assert "option alpha was auto and is now 0.5" in message
    message = failed(5, *fit, "--seed", "3", "--resume", "--threads", "1", "--engine", "threads")
    assert "option random_state was 0 and is now 3" in message
    assert "alpha" not in message
    assert "threads" not in message
    content = labels.read_bytes()
    labels.write_bytes(content)
    assert f"labels {labels} was 4,128 bytes written" in failed(5, *fit, "--resume")
    done(*fit, "--overwrite", "--engine", "serial")
    assert names("out") == RESULTS


def test_a_finished_run_has_nothing_to_do_and_a_busy_one_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done(*LINEAR)
    before = Path("out/labels.npy").stat()
    assert "already ended" in done(*LINEAR, "--resume").stdout
    assert Path("out/labels.npy").stat().st_mtime_ns == before.st_mtime_ns
    assert "scaling was auto and is now none" in failed(5, *LINEAR, "--resume", "--scaling", "none")
    assert "labels.npy" in failed(2, *LINEAR)
    busy = RunFolder(Path("out/.biglp-run"), {"command": "fit"}, resume=False)
    message = failed(5, *LINEAR, "--overwrite")
    assert "another process is at work in out/.biglp-run" in message
    busy.close()
    done(*LINEAR, "--overwrite")


def test_killed_while_files_get_their_names(tmp_path, monkeypatch):
    """The moves are finished by the next run, whichever of them were done."""
    monkeypatch.chdir(tmp_path)
    fit = (*LINEAR, "--confidence")
    done(*fit)
    reference = Path("out").rename("reference")
    for survivors in range(4):
        moved: list[str] = []

        def replace(old, new, survivors=survivors, moved=moved, real=os.replace):
            if Path(old).parent.name == "answers" and Path(new).parent.name == "out":
                if len(moved) == survivors:
                    raise KeyboardInterrupt
                moved.append(str(new))
            real(old, new)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            assert run(*fit).exit_code == 130
        assert not Path("out/summary.json").exists()
        done(*fit, "--resume")
        same_results(reference, Path("out"))
        for path in Path("out").iterdir():
            path.unlink()


def test_a_lock_whose_file_was_removed_protects_nothing(tmp_path, monkeypatch):
    """Several --overwrite at once: one was held up between opening the lock and locking it."""
    lock = tmp_path / "run" / "lock"
    first = hold(lock)
    assert first is not None
    assert hold(lock) is None

    def slow(path):
        file = lock_file(path)
        if file is None:  # the holder ends just now
            remove_held(lock, first)
            file = open(os.devnull, "ab")  # noqa: SIM115 - as the lock of a file that is gone
        return file

    with monkeypatch.context() as patch:
        patch.setattr("biglp._files.local.lock_file", slow)
        mine = hold(lock)
    assert mine is not None
    assert os.path.samestat(os.fstat(mine.fileno()), lock.stat())
    assert hold(lock) is None
    remove_held(lock, mine)
    assert not lock.parent.exists()


# What a failed run advises ------------------------------------------------------------------------


@pytest.fixture
def command_line(here, rows, monkeypatch):
    values, shown, _ = rows
    arguments = ("fit", *write("csv", values, shown), "-o", "out")

    def fail(error, *more, before=lambda: None):
        def refuse(*args, **options):
            before()
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("sys.argv", ["biglp", *map(str, (*arguments, *more))])
            patch.setattr(Pipeline, "prepare", refuse)
            return run(*arguments, *more).stderr

    return arguments, fail


@pytest.mark.parametrize("memory", [["--memory", "400MB"], ["--memory=400MB"]])
def test_a_refused_budget_advises_more_memory_not_the_same_again(command_line, memory):
    _, fail = command_line
    message = fail(MemoryBudgetError("memory=400 MB is too little.", least=900 << 20), *memory)
    assert "converted rows. Go on with" in message
    advised = re.search(r"^ +biglp (.*)$", message, re.M)[1].split()
    assert advised[-3:] == ["--memory", "900MB", "--resume"]
    assert advised.count("--memory") == 1
    assert not any("400" in word for word in advised)
    done(*advised)


def test_warnings_before_an_error_are_given(command_line):
    _, fail = command_line

    def warn():
        warnings.warn("from another library", FutureWarning, stacklevel=2)
        warnings.warn("labels look odd", LabelWarning, stacklevel=2)

    with pytest.warns(FutureWarning, match="another library"), pytest.warns(LabelWarning):
        assert "no good rows" in fail(BadRowsError("no good rows"), before=warn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", LabelWarning)  # the first error is the one that counts
        assert "no good rows" in fail(BadRowsError("no good rows"), "--overwrite", before=warn)


def test_what_is_refused_before_any_work_leaves_nothing_that_hinders(command_line, monkeypatch):
    arguments, _ = command_line
    path, more = arguments[1], ("--top", "4")
    Path("wrong.csv").write_text("row,label\n0,a\n1,a\n")
    wrong = ("fit", path, "--drop", "y", "--labels", "wrong.csv", "-o", "out")
    for code, given, word in ((3, wrong, "only one class"), (2, (*arguments, *more), "--top")):
        message = failed(code, *given)
        assert word in message
        assert "Kept" not in message
        assert not Path("out").exists()
    done(*arguments)
    asked = ("predict", "out/model.biglp", path, "-o", "new.csv")
    assert "Kept" not in failed(2, *asked, *more)  # refused before rows were converted
    done(*asked)
    message = failed(4, "fit", "sim:2Kx500", "-o", "o", "--factor", "linear", "--memory", "40MB")
    assert "use fewer features" in message
    assert "landmarks" not in message
    message = failed(3, "suggest", "nothere")
    assert "there is no file nothere, nor a folder of that name" in message


def test_the_least_budget_is_known_to_python(rows):
    values, shown, _ = rows
    model = LowRankLabelPropagation(memory="40MB")
    with pytest.raises(MemoryBudgetError) as refused:
        model.fit(values, shown)
    least = refused.value.least
    assert pickle.loads(pickle.dumps(refused.value)).least == least
    assert f"--memory {-(-least >> 20)}MB" in str(refused.value)
    model.set_params(memory=least).fit(values, shown)


def test_clean_lists_and_removes_what_killed_runs_left(tmp_path):
    def folder(name, header):
        made = tmp_path / name / ".biglp-run"
        made.mkdir(parents=True)
        (made / "lock").touch()
        (made / "run.json").write_text(json.dumps(header))
        return made

    version = {"biglp": __version__}
    nothing, resumable, busy = (folder(name, version) for name in ("a", "b", "c"))
    np.savez(resumable / "rows-gram.npz", gram=np.eye(2))
    other = folder("d", {"biglp": "0.0.1"})
    np.savez(other / "rows-gram.npz", gram=np.eye(2))
    begun = tmp_path / "cache" / f"rows-{'0' * 16}.{'0' * 8}.part"
    begun.mkdir(parents=True)
    (begun / "rows.npy").write_bytes(bytes(2048))
    mine = tmp_path / "c" / "labels.parquet"
    mine.write_text("results")
    (tmp_path / "cache" / "notes-2026").mkdir()
    with lock_file(busy / "lock"):
        said = done("clean", tmp_path).output
        assert said.count("Would remove: ") == 3
        assert "Kept: " in said
        assert "3 things" in said
        assert nothing.exists()
        assert begun.exists()
        assert done("clean", tmp_path, "--yes").output.count("Removed: ") == 3
        assert [path.exists() for path in (nothing, resumable, busy, other, begun)] == [
            *(False, True, True, False, False)
        ]
        done("clean", tmp_path, "--yes", "--all")
        assert not resumable.exists()
        assert busy.exists()
    assert mine.exists()
    assert (tmp_path / "cache" / "notes-2026").exists()
