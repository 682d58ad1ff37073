"""Labels as text, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biglp._core.files import FileStamp
from biglp._sources.formats.base import Format, LabelColumns
from biglp._sources.formats.textfiles import open_text
from biglp._sources.labels.codes import LABEL_NAMES, LabelCodes


class LinesFormat(Format):
    """Labels only, one a line."""

    name = "lines"

    def read_labels(self, codes: LabelCodes, files: Sequence[str], columns: LabelColumns) -> None:
        """Append a label for each line of the first file."""
        append_lines(codes, files[0])


def append_lines(codes: LabelCodes, path: str) -> None:
    """One label a line; one line more than there are rows means that the first is a name."""
    stamp = FileStamp.of(path)
    n_lines = _count_lines(path)
    skip = codes.n_rows is not None and n_lines == codes.n_rows + 1
    if codes.n_rows is None:
        with open_text(path) as file:
            skip = file.readline().decode("utf-8-sig", "replace").strip() in LABEL_NAMES
    codes.expect(n_lines - skip)
    for piece in _pieces(path):
        codes.append(piece[1:] if skip else piece, text=True)
        skip = False
    stamp.check()


def _pieces(path: str) -> Iterator[list[str]]:
    with open_text(path) as file:
        while lines := file.readlines(8 << 20):
            texts = [line.decode("utf-8-sig", errors="replace").strip() for line in lines]
            yield [text[1:-1] if text[:1] == text[-1:] == '"' else text for text in texts]


def _count_lines(path: str) -> int:
    count, last = 0, b"\n"
    with open_text(path) as file:
        while piece := file.read(1 << 22):
            count += piece.count(b"\n")
            last = piece[-1:]
    return count + (last != b"\n")


LINES = LinesFormat()
