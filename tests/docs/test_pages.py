"""Code of the guides runs as it is printed, or says why not; words keep to their budget.

A block that begins with, for example, ```` ```sh no-run: opens a page ```` is not run. The others
are run in order, in a folder that holds the files which pages name. A fit into a folder that is
there replaces it: examples of a page are alternatives.
"""

import re
import runpy
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from cli_tools import run
from helpers import blobs

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
ELSEWHERE = {"recipes", "stores", "command-line"}  # test_recipes.py, test_readme.py
BLOCK = re.compile(r"^```(\w+) ?(.*)\n((?s:.*?))^```", re.M)


def code(page: str) -> list[tuple[str, str]]:
    """Kind and text of the blocks that are run."""
    found = BLOCK.findall(PAGES[page])
    kinds = ("python", "sh", "bash", "console")
    return [(kind, text) for kind, mark, text in found if kind in kinds and "no-run" not in mark]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A small file of each name that pages use."""
    monkeypatch.chdir(tmp_path)
    X, y, _ = blobs()
    words = np.array(["ball team match goal", "bank share price rate", "film song actor stage"])
    texts = [f"{words[code]} {code} {row}" for row, code in enumerate(np.abs(y))]
    left = pa.array(np.array(["no", "yes", "no"])[y], mask=y < 0)
    customers = pa.table(
        {
            "customer_id": [f"C{row}" for row in range(len(X))],
            "age": X[:, 0],
            "spent": X[:, 1],
            "plan": np.array(["basic", "plus"])[(X[:, 2] > 0).astype(int)],
            "comment": texts,
            "left": left,
        }
    )
    pa.csv.write_csv(customers, "customers.csv")
    pa.csv.write_csv(customers.drop_columns("left"), "new.csv")
    topics = pa.array(words[y], mask=y < 0)
    pa.csv.write_csv(pa.table({"text": texts, "topic": topics}), "news.csv")
    names = "class,description\nsport,matches\nbusiness,shares\n"
    Path("names.csv").write_text(names, encoding="utf-8")
    emb = pa.FixedSizeListArray.from_arrays(X.ravel(), X.shape[1])
    pq.write_table(pa.table({"emb": emb, "age": X[:, 0], "topic": topics}), "articles.parquet")
    for folder in ("vectors", "meta", "parts"):
        Path(folder).mkdir()
    for number in range(2):
        part = slice(100 * number, 100 * number + 100)
        np.save(f"vectors/emb_{number}.npy", X[part].astype(np.float16))
        pq.write_table(pa.table({"topic": topics[part]}), f"meta/meta_{number}.parquet")
        pq.write_table(customers[part], f"parts/part_{number}.parquet")
    np.save("rows.npy", X)
    np.save("labels.npy", y)
    known = np.flatnonzero(y >= 0)
    for name in ("labels.csv", "graph-labels.csv"):
        pa.csv.write_csv(pa.table({"row": known, "label": y[known]}), name)
    near = np.abs(X[:, None] - X).sum(axis=2) < 3
    sparse.save_npz("graph.npz", sparse.csr_matrix(near.astype(float)))


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("page", sorted(page for page in PAGES if code(page)))
def test_the_code_of_a_page_runs_as_it_is_printed(page, files):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    found: dict = {}
    for kind, text in [] if page in ELSEWHERE else code(page):
        if kind == "python":
            exec(text, found)
            continue
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            assert words[:1] in ([], ["biglp"]), line
            if "fit" in words and not {"--resume", "--overwrite"} & set(words):
                shutil.rmtree(words[words.index("-o") + 1], ignore_errors=True)
            if words:
                outcome = run(*words[1:])
                assert outcome.exit_code == 0, (line, outcome.output)
    pyplot.close("all")


def test_code_that_is_not_run_says_why():
    marks = [mark for text in PAGES.values() for _, mark, _ in BLOCK.findall(text)]
    marks = [mark for mark in marks if "no-run" in mark]
    assert marks
    assert [mark for mark in marks if not re.fullmatch(r"(\w+ )?no-run: .{8,}", mark)] == []


@pytest.mark.parametrize("look", ["words", "prose"])
def test_pages_keep_to_their_budget(look):
    assert runpy.run_path(str(DOCS / "_ext" / "prose.py"))[look]() == []


def test_every_page_has_a_budget():
    prose = runpy.run_path(str(DOCS / "_ext" / "prose.py"))["BUDGET"]
    generated = {"command-line", "changes", "contributing"}
    assert set(PAGES) - set(prose["guides"]) - set(prose["others"]) == generated
