#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Sessions for those who use nox; ``make`` sets up the same in one environment.

``nox -s tests`` has the newest versions of all dependencies, ``nox -s lowest`` the lowest that
``pyproject.toml`` allows.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
ROOMS = ["core", "labels", "propagate", "lowrank", "answers", "sinks", "sources", "estimators"]
"""Tests that ask most of the dependencies, and no cluster."""


def lowest(requirements: list[str]) -> list[str]:
    """The lowest versions that requirements allow, as exact ones."""
    found = []
    for requirement in requirements:
        name = re.match(r"[A-Za-z0-9_.-]+", requirement)
        least = re.search(r">=\s*([0-9.]+)", requirement)
        if name and least:
            found.append(f"{name[0]}=={least[1]}")
    return found


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run all tests with the newest versions, and hold coverage to its floor."""
    session.install("--constraint", "constraints.txt", "-e", ".[test,plot,dask,hdf5,zarr,lake]")
    session.install("coverage[toml]>=7.5")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "report")


@nox.session(name="lowest", python="3.11", default=False)
def lowest_versions(session: nox.Session) -> None:
    """Run the rooms' tests with the lowest versions of all dependencies."""
    extras = PROJECT["optional-dependencies"]
    exact = lowest(PROJECT["dependencies"] + extras["plot"] + extras["hdf5"] + extras["zarr"])
    # typer 0.16 warns of nothing with the click of its time only.
    tools = ["click==8.2.0", "pytest==8.3.5", "pytest-timeout", "hypothesis", "pandas==2.1.0"]
    session.install(*exact, *tools)
    session.install("--no-deps", "-e", ".")
    session.run("python", "-m", "pytest", *(session.posargs or [f"tests/{r}" for r in ROOMS]))


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site, warnings being errors, and check its links."""
    session.install("--constraint", "constraints.txt", "-e", ".[docs]")
    site = "docs/_build/html"
    session.run("python", "-m", "sphinx", "--fail-on-warning", "--quiet", "docs", site)
    session.run("python", "docs/_ext/check_site.py", site)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, types and the direction of imports."""
    session.install("-e", ".[lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")


@nox.session(default=False)
def dist(session: nox.Session) -> None:
    """Build wheel and sdist, reproducibly, and try the wheel in an empty environment."""
    session.install("build")
    session.run("python", "packaging/try_dist.py", "dist")


if __name__ == "__main__":
    nox.main()
