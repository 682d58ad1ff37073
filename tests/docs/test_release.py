"""Files that a release needs say the same as pyproject.toml, and actions are pinned."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import biglp

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_have_no_more_rights_than_they_need(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    assert re.search(r"^permissions:\n  contents: read$", text, re.M)


def test_every_python_that_is_promised_is_tested():
    promised = [
        found[1] for each in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", each))
    ]
    assert PROJECT["requires-python"] == f">={promised[0]}"
    tested = re.search(r"python: \[(.*)\]", read(".github/workflows/tests.yml"))[1]
    assert re.findall(r"3\.\d+", tested) == promised
    assert re.findall(r'"(3\.\d+)"', re.search(r"PYTHONS = .*", read("noxfile.py"))[0]) == promised


def test_the_conda_recipe_asks_for_the_same():
    recipe = read("packaging/conda/recipe.yaml")
    asked = re.findall(r"^    - ([a-z0-9-]+ >=[0-9.]+)$", recipe[recipe.index("  run:") :], re.M)
    assert asked == [each.replace(">=", " >=") for each in PROJECT["dependencies"]]
    ((script, where),) = PROJECT["scripts"].items()
    assert f"- {script} = {where}\n" in recipe
    version = re.search(r'version: "(.*)"', recipe)[1]
    assert Version(version).release == Version(biglp.__version__).release


def bounds(*extras: str) -> dict[str, str]:
    found = {}
    for each in PROJECT["dependencies"] + [
        line for extra in extras for line in PROJECT["optional-dependencies"][extra]
    ]:
        asked = Requirement(each)
        if asked.name.startswith("biglp"):  # released together
            continue
        (only,) = asked.specifier
        assert only.operator == ">=", f"{each}: one bound, the lowest version that is tested"
        found[asked.name] = only.version
    return found


def test_the_lowest_versions_are_those_that_are_tested():
    """All but those of docs and lint, which nobody needs to use biglp."""
    extras = [each for each in PROJECT["optional-dependencies"] if each not in ("docs", "lint")]
    first = read("packaging/lowest.txt").split("\n\n")[0]
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", first, re.M))
    asked = bounds(*extras)
    asked.pop("biglp-text-en")  # packages/text-en, which comes with biglp
    assert sorted(pinned) == sorted(asked)
    assert {n: pinned[n] for n in asked if Version(pinned[n]) != Version(asked[n])} == {}
    assert "packaging/lowest.txt" in read("noxfile.py")


def test_the_page_of_promises_names_the_lowest_versions():
    text = read("docs/reliability.md").split("## Versions")[1].split("\n## ")[0]
    told = dict(re.findall(r"([\w-]+) (\d[\d.]*)", text))
    extras = ("gpu", "mpi", "dask", "plot", "hdf5", "zarr", "peers", "lake", "label")
    asked = bounds(*extras)
    assert {name: told.get(name) for name in asked} == asked


def test_the_citation_names_the_version_and_the_paper():
    text = read("CITATION.cff")
    assert f"version: {biglp.__version__}\n" in text
    assert PROJECT["urls"]["Paper"] in text
    text = read("packaging/Dockerfile")
    last = text[text.rindex("FROM ") :]
    assert re.search(r"^USER 1000:1000$", last, re.M)  # the container has no rights
