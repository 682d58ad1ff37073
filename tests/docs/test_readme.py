"""Every command that README and the command-line page show is run, in order, in one folder.

Commands are the lines of ``console`` blocks that begin with ``$ biglp``; ``# exit 3`` at the end of
one says that it is meant to fail with that code.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from biglp.cli import app
from cli_tools import run

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/command-line.md")


def commands(page: str) -> list[tuple[str, int]]:
    """Commands of a page and the exit codes they should have."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ biglp"):
                command, _, comment = line.removeprefix("$ ").partition("  # ")
                code = re.search(r"exit (\d+)", comment)
                found.append((command.strip(), int(code[1]) if code else 0))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command, code in commands(page):
        if re.search(r"[|<>;&$*]", command):
            bin_folder = Path(sys.executable).parent
            path = os.pathsep.join([str(bin_folder), os.environ["PATH"]])
            result = subprocess.run(command, shell=True, env={**os.environ, "PATH": path})
            assert result.returncode == code, command
        else:
            outcome = run(*shlex.split(command)[1:])
            assert outcome.exit_code == code, (command, outcome.output)


def test_first_hour_docs_the_page_counts_every_command():
    listed = {each.name or each.callback.__name__ for each in app.registered_commands}
    text = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    said = text.split("\n\n")[1]
    assert {name for name in listed if f"`{name}`" not in said} == set()
    assert said.startswith({9: "Nine commands: "}[len(listed)])


def test_the_page_shows_every_command():
    shown = {command.split()[1] for command, _ in commands("docs/command-line.md")}
    assert shown >= {"fit", "predict", "suggest", "check", "report", "inspect"}
    assert shown >= {"simulate", "demo"}
