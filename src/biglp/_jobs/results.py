"""Where the files of a run end up, how they get their final names, and what a fit left there.

Everything is made in a run folder. When all of it is there, a list of moves is written, and the
files are renamed into place, the summary last. Killed before the list, a run leaves no final name;
killed after it, resuming the run finishes the moves. Results that go to a store are made in a local
folder and uploaded in the same way, the summary last.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from biglp._core.errors import BadRowsError, ParameterError
from biglp._files.local import atomic_write, explained_writing, hold, remove_held, sync_folder
from biglp._files.runfolder import HEADER, LOCK, RunFolder, journal_entries
from biglp._files.uri import StorePath, as_place, work_folder
from biglp._labels.reading import Marks
from biglp._output import MAP, TABLES, table_ending
from biglp._rows import InputFiles
from biglp._rows.options import LAYOUT

RUN_FOLDER = ".biglp-run"
STAGE, CACHE, MOVES = "answers", "cache", "moves.json"
SUMMARY, MODEL, REPORT = "summary.json", "model.biglp", "report.html"
COLUMNS = ("labels", "confidence", "probabilities", "top_classes", "top_probabilities")
CONVERTED = "converted rows"
STEP_WORDS = {
    "factor": "landmarks",
    "degrees": "degrees",
    "gram": "Gram sums",
    "decision": "propagation",
}


class Destination:
    """The final names of a run's files.

    ``path`` is a folder, or a file for answers alone (.npy or a table), here or in a store;
    ``cache`` is a folder for unfinished work whose results go to a store.
    """

    def __init__(self, path: Any, cache: str | None = None) -> None:
        self.path, self.ending = path, table_ending(path.name)
        self.is_file = path.suffix.lower() == ".npy" or self.ending is not None
        # What stands beside the results while they are not there yet: in a store only a mark, as
        # unfinished work is always on a disk.
        self.beside = path / RUN_FOLDER
        if self.is_file:
            self.beside = path.with_name(f".{path.name}{RUN_FOLDER}")
        in_store = isinstance(path, StorePath)
        self.run_folder = work_folder(path, cache) if in_store else Path(self.beside)

    def results(self) -> list[Any]:
        if self.is_file:
            return [self.path] if self.path.exists() else []
        names = [f"{column}.npy" for column in COLUMNS] + [f"labels{ending}" for ending in TABLES]
        names += [MAP, MODEL, REPORT, SUMMARY]
        if isinstance(self.path, StorePath):
            there = {*self.path.files()}
            return [self.path / name for name in names if name in there]
        return [self.path / name for name in names if (self.path / name).exists()]

    def tidy(self, lock: IO[bytes] | None, *, again: bool = True) -> None:
        """After an error, remove a run folder in which nothing is finished, and its lock.

        Where the same command cannot succeed ``again``, as its labels or options are wrong,
        converted rows go too: a corrected command is another run, which cannot go on with them.
        """
        useless = (None,) if again else (None, CONVERTED)
        if lock is not None and unfinished_work(self.run_folder) in useless:
            remove_held(self.run_folder / LOCK, lock, first=HEADER)
            if not (self.is_file or isinstance(self.path, StorePath)):
                with suppress(OSError):
                    self.path.rmdir()  # only when it is empty

    def forget(self) -> None:
        """Remove what belongs to no run: copies for one that did not begin, rests of an old one.

        A run that was killed while its folder was being removed leaves such rests.
        """
        if not self.run_folder.exists():
            return
        lock = hold(self.run_folder / LOCK)
        if lock is None:  # another process has begun one
            return
        if not (self.run_folder / HEADER).exists():
            self.tidy(lock)
        lock.close()

    def mark(self) -> None:
        """Find out now whether a store takes files under that name, not when the work is done."""
        with atomic_write(self.beside) as file:
            text = f"unfinished; its work is in {self.run_folder} on {socket.gethostname()}\n"
            file.write(text.encode())


def finish_moves(run: RunFolder) -> dict[str, Any] | None:
    """Finish a run that had all its files and return its summary; None when it had not."""
    path = run.folder / MOVES
    if not path.exists():
        return None
    plan = json.loads(path.read_text(encoding="utf-8"))
    moves = {run.folder / STAGE / name: as_place(final) for name, final in plan["moves"].items()}
    finals, staged_summary = list(moves.values()), run.folder / STAGE / SUMMARY
    summary = ""
    for path in filter(None, (staged_summary, moves.get(staged_summary))):
        with suppress(OSError, BadRowsError):  # it may have been moved already
            summary = summary or path.read_text(encoding="utf-8")
    with explained_writing(finals[0]):
        # The old summary goes first: while there is none, the results are not complete.
        for old in map(as_place, plan["stale"]):
            if old not in finals or (old.name == SUMMARY and staged_summary.exists()):
                old.unlink(missing_ok=True)
        for staged, final in moves.items():
            if not staged.exists():
                continue
            if isinstance(final, StorePath):  # it appears there whole
                final.upload(staged)
                staged.unlink()
            else:
                os.replace(staged, final)
        if plan.get("marker"):
            as_place(plan["marker"]).unlink(missing_ok=True)
        else:
            sync_folder(finals[0].parent)
    run.remove()
    return dict(json.loads(summary))


def unfinished_work(folder: Path) -> str | None:
    """Say in words what an unfinished run has finished; None when that is nothing."""
    if not (folder / HEADER).exists():
        return None
    done = []
    if any(folder.glob(f"{CACHE}/*/meta.json")):
        done.append(CONVERTED)
    steps = {path.stem.rpartition("-")[2] for path in folder.glob("*.npz")}  # of any view
    done += [word for name, word in STEP_WORDS.items() if name in steps]
    rows = sum(sum(counts.values()) for _, (_, counts) in journal_entries(folder))
    if rows:
        done.append(f"{rows:,} labelled rows")
    return ", ".join(done) or None


@dataclass(frozen=True)
class FinishedFit:
    """Rows, labels and options of a finished fit, read back from its folder."""

    inputs: tuple[str, ...]  # as they were named
    labels: tuple[str, ...]  # files; labels may also be in the rows
    label_column: str | None
    weight_column: str | None
    id_column: str | None
    metadata: Any  # files of the table beside the rows
    unlabelled: Marks
    options: dict[str, Any]
    command: str | None  # as it was typed; None where no command line made the fit

    @classmethod
    def in_folder(cls, folder: Any, *, instead: str, changed: str) -> FinishedFit:
        """Read the summary; the words say what may be given instead, and what changed rows ask for.

        ParameterError: there is no finished fit, or its rows have changed since.
        """
        try:
            summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
            run, command = summary["run"], summary["command"]
            facts, labels = dict(run["input"]), dict(run["labels"])
            options = dict(run["option"])
            columns = {
                # Labels may have been added to their files since; in the rows they cannot.
                "labels": tuple(labels["named"]),
                "label_column": labels["column"],
                "weight_column": labels["weight column"],
                "id_column": labels["id column"],
                "metadata": labels.get("metadata"),
                "unlabelled": labels["unlabelled"],
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ParameterError(
                f"{folder} is a folder without the results of a finished biglp fit; give that, or "
                f"{instead}."
            ) from error
        simulated = facts.get("simulation")
        inputs = (simulated,) if simulated else tuple(facts)
        if not simulated and InputFiles(list(inputs)).facts != facts:
            raise ParameterError(
                f"the rows behind {folder} have changed since it was made ({', '.join(inputs)}); "
                f"{changed}."
            )
        return cls(inputs, **columns, options=options, command=command)

    def as_arguments(self, reading: tuple[str, ...] = ("drop", *LAYOUT)) -> dict[str, Any]:
        """Arguments of a job on the same rows and labels, with these options of their reading.

        Labels are those of now: they may have been corrected or added to.
        """
        return {
            "fit": self,
            "inputs": self.inputs,
            "labels": self.labels,
            "label_column": self.label_column,
            "id_column": self.id_column,
            "metadata": self.metadata,
            "unlabelled": self.unlabelled,
            "reading": {name: self.options[name] for name in reading if name in self.options},
        }
