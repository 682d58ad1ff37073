"""Labels as text, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biglp._rows.format import LABEL_NAMES, Format, LabelColumns, LabelPiece
from biglp._rows.textfiles import decoded, find_charset_of, open_text

PIECE_CHARACTERS = 8 << 20


class LinesFormat(Format):
    """Labels only, one a line."""

    name = "lines"

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield a label for each line of the first file."""
        return labels_in_lines(files[0], n_rows)


def labels_in_lines(path: str, n_rows: int | None) -> Iterator[LabelPiece]:
    """One label a line; one line more than there are rows means that the first is a name."""
    charset = find_charset_of(path).name
    n_lines = sum(map(len, _pieces(path, charset)))
    skip = n_rows is not None and n_lines == n_rows + 1
    if n_rows is None:
        skip = next((piece[0] in LABEL_NAMES for piece in _pieces(path, charset)), False)
    yield LabelPiece([], text=True, total=n_lines - skip)
    for piece in _pieces(path, charset):
        yield LabelPiece(piece[1:] if skip else piece, text=True)
        skip = False


def _pieces(path: str, charset: str) -> Iterator[list[str]]:
    with open_text(path) as file, decoded(file, charset) as text:
        while lines := text.readlines(PIECE_CHARACTERS):
            texts = [line.strip() for line in lines]
            yield [word[1:-1] if word[:1] == word[-1:] == '"' else word for word in texts]


LINES = LinesFormat()
