"""Build wheels and sdist twice, compare them, and use the wheels where nothing else is.

Run with:  python packaging/try_dist.py dist

biglp's wheel is installed in an environment of its own, and everything runs in an empty folder
outside the source tree: the demo, a fit and a prediction on a CSV file, texts with nothing but the
names of their classes (the second wheel, what English words mean), and the labelling page.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

ROOT = Path(__file__).resolve().parents[1]


def build(out: Path) -> dict[str, str]:
    """Build into a folder; names and digests of what is there then."""
    when = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    known = {**os.environ, "SOURCE_DATE_EPOCH": when or "1700000000"}
    command = [sys.executable, "-m", "build", "--outdir", str(out)]
    for what in ([str(ROOT)], ["--wheel", str(ROOT / "packages" / "text-en")]):
        subprocess.run([*command, *what], env=known, check=True, stdout=subprocess.DEVNULL)
    files = sorted(path for path in out.iterdir() if path.suffix in (".whl", ".gz"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_customers(path: Path) -> None:
    """A small table: a number, a category, and a label for one row in seven."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["spend", "plan", "left"])
        for row in range(600):
            left = row % 3 == 0
            known = ("yes" if left else "no") if row % 7 == 0 else ""
            writer.writerow([row % 50 + 100 * left, ("basic", "plus")[row % 2], known])


def write_news(path: Path) -> None:
    """Sentences about two things, and no label."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text"])
        for row in range(400):
            team, price = (
                ("coach", "striker", "referee")[row % 3],
                ("shares", "bank", "profit")[row % 3],
            )
            sport = f"the {team} won the match and the league in week {row}"
            money = f"the {price} of the company rose on the market in week {row}"
            writer.writerow([sport if row % 2 else money])


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install a wheel in an empty environment and use it in an empty folder."""
    home, work = folder / "environment", folder / "work"
    work.mkdir()
    venv.create(home, with_pip=True)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    alone = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(program: str, *words: str) -> None:
        print("$", program, *words, flush=True)
        subprocess.run([str(programs / program), *words], cwd=work, env=alone, check=True)

    run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    write_customers(work / "customers.csv")
    run("python", "-c", "import biglp; print(biglp.__version__, biglp.__file__)")
    run("biglp", "--version")
    run("biglp", "demo")
    run("biglp", "inspect", "customers.csv", "--label-column", "left")
    run("biglp", "fit", "customers.csv", "--label-column", "left", "-o", "out")
    run("biglp", "predict", "out/model.biglp", "customers.csv", "-o", "again.csv")
    run("biglp", "suggest", "out", "-n", "3")
    found = ("--find-links", str(wheel.parent))
    run("python", "-m", "pip", "install", "--quiet", *found, f"{wheel}[label,text]")
    write_news(work / "news.csv")
    names = ("--text", "text", "--classes", "sports and games,business and money")
    run("biglp", "fit", "news.csv", *names, "-o", "topics")
    print("$ biglp label customers.csv", flush=True)
    words = ["label", "customers.csv", "--classes", "yes,no", "--drop", "left", "--no-browser"]
    page = subprocess.Popen(
        [str(programs / "biglp"), *words], cwd=work, env=alone, stdout=subprocess.PIPE, text=True
    )
    try:
        assert page.stdout is not None
        address = next(found for line in page.stdout if (found := re.search(r"http://\S+", line)))
        browser = build_opener(HTTPCookieProcessor(), ProxyHandler({}))  # a token becomes a cookie
        with browser.open(address[0], timeout=30) as answer:
            print(f"the labelling page answers {answer.status}")
    finally:
        page.terminate()
        page.wait(30)


def main() -> None:
    """Build, compare, try, and leave the files in the folder that was named."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, second = build(folder / "first"), build(folder / "second")
        if first != second:
            sys.exit(f"two builds of the same files differ: {first} {second}")
        out.mkdir(exist_ok=True)
        for file in first:
            (out / file).write_bytes((folder / "first" / file).read_bytes())
            print(f"{file}: the same bytes twice, sha256 {first[file]}")
        try_wheel(out / next(name for name in first if re.match(r"biglp-.*whl$", name)), folder)


if __name__ == "__main__":
    main()
