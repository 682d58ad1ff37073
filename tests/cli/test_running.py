"""Going on after a run that failed."""

import re
from pathlib import Path

import pytest

from biglp._core.errors import BadRowsError, MemoryBudgetError
from cli_tools import done, failed, run
from row_files import write


@pytest.mark.parametrize("memory", [["--memory", "400MB"], ["--memory=400MB"]])
def test_first_hour_5_a_refused_budget_advises_more_memory_not_the_same_again(
    here, rows, monkeypatch, memory
):
    def refuse(*args, **options):
        raise MemoryBudgetError(
            "memory=400 MB is too little. Give at least 900 MB (--memory 900MB).", 900 << 20
        )

    values, shown, _ = rows
    arguments = ("fit", *write("csv", values, shown), "-o", "out", *memory)
    monkeypatch.setattr("sys.argv", ["biglp", *map(str, arguments)])
    with monkeypatch.context() as patch:
        patch.setattr("biglp._jobs.fit.Pipeline.prepare", refuse)
        message = run(*arguments).stderr
    assert "converted rows. Go on with" in message
    advised = re.search(r"^ +biglp (.*)$", message, re.M)[1].split()
    assert advised[-3:] == ["--memory", "900MB", "--resume"]
    assert advised.count("--memory") == 1
    assert not any("400MB" in word for word in advised)
    done(*advised)


def test_more_likeliest_classes_than_there_are(here, rows, monkeypatch):
    values, shown, truth = rows
    arguments = ("fit", *write("csv", values, shown), "-o", "out")
    given = ("--top", str(len(set(truth)) + 1))
    monkeypatch.setattr("sys.argv", ["biglp", *map(str, arguments), *given])
    with monkeypatch.context() as patch:
        patch.setattr("biglp._jobs.fit.Pipeline.prepare", None)  # refused before any work
        message = failed(2, *arguments, *given)
    assert "--top" in message
    assert "Kept" not in message
    done(*arguments)
    asked = ("predict", "out/model.biglp", *arguments[1:2], "-o", "new.csv")
    message = failed(2, *asked, *given)
    assert "Kept" not in message  # refused before rows were converted
    done(*asked)


def test_first_hour_5_the_linear_kernel_is_not_advised_fewer_landmarks(here):
    message = failed(4, "fit", "sim:2Kx500", "-o", "out", "--factor", "linear", "--memory", "40MB")
    assert "use fewer features" in message
    assert "landmarks" not in message


def test_first_hour_5_a_folder_that_is_not_there(here):
    message = failed(3, "suggest", "nothere")
    assert "there is no file nothere, nor a folder of that name" in message


def test_resuming_is_not_advised_after_a_change_that_cannot_be_resumed(here, rows, monkeypatch):
    """A file that was written again while the run was at work."""
    values, shown, _ = rows
    path, *options = write("csv", values, shown)

    def changed(self, *args, **options):
        with open(path, "a") as file:
            file.write("\n")
        raise BadRowsError(f"{path} changed while it was being worked on")

    with monkeypatch.context() as patch:
        patch.setattr("biglp._jobs.fit.Pipeline.prepare", changed)
        message = run("fit", path, *options, "-o", "out").stderr
    assert "converted rows. That run cannot be gone on with now, because input" in message
    assert "--overwrite" in message
    assert "--resume" not in message
    message = failed(5, "fit", path, *options, "-o", "out", "--resume")
    assert "Kept" not in message


def test_wrong_labels_leave_nothing_that_hinders_the_corrected_command(here, rows):
    values, shown, _ = rows
    path, *options = write("csv", values, shown)
    Path("wrong.csv").write_text("row,label\n0,a\n1,a\n")
    message = failed(3, "fit", path, "--drop", "y", "--labels", "wrong.csv", "-o", "out")
    assert "only one class" in message
    assert "Kept" not in message
    assert not Path("out").exists()
    done("fit", path, *options, "-o", "out")


def test_unfinished_work_of_another_command_is_not_advised_to_be_resumed(here, rows, monkeypatch):
    def refuse(*args, **options):
        raise MemoryBudgetError("too little")

    values, shown, _ = rows
    arguments = ("fit", *write("csv", values, shown), "-o", "out")
    with monkeypatch.context() as patch:
        patch.setattr("biglp._jobs.fit.Pipeline.prepare", refuse)
        failed(4, *arguments)
    message = failed(2, *arguments, "-k", "9")
    assert "unfinished run of other options or files (converted rows). Start afresh" in message
    assert "--resume" not in message
    assert "Go on with it by --resume" in failed(2, *arguments)
