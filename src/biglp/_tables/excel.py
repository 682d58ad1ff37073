"""Excel and OpenDocument workbooks: one sheet, its first line the names of the columns.

Read by python-calamine, or pandas with openpyxl, and held in memory: a sheet has a million lines at
most.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import pyarrow as pa

from biglp._core.errors import BadRowsError, MissingExtraError
from biglp._files.local import FileStamp
from biglp._files.uri import INSIDE, split_inside
from biglp._rows.options import ReadOptions
from biglp._tables.arrow import FrameTable
from biglp._tables.source import TableFormat
from biglp._tables.table import TableFile, shortened

NOTHING = (None, "")


class ExcelTable(FrameTable):
    """A sheet of a workbook: the first one, or ``book.xlsx::sheet``."""

    kind = "Excel"

    def __init__(self, path: str, options: ReadOptions, like: TableFile | None = None) -> None:
        self.name = path
        file, inside = split_inside(path)
        stamp = FileStamp.of(file)
        try:
            sheets, lines, sheet = read_sheet(file, inside.removeprefix(INSIDE))
        except (BadRowsError, MissingExtraError):
            raise
        except Exception as error:  # two packages with classes of errors of their own
            raise self.unreadable(error) from error
        lines = [line for line in lines if any(cell not in NOTHING for cell in line)]
        if len(lines) < 2:
            raise BadRowsError(f"{path}: sheet {sheet!r} has no rows below the names of columns.")
        head, columns = lines[0], list(zip(*lines[1:], strict=True))
        used = [
            any(cell not in NOTHING for cell in (name, *column))
            for name, column in zip(head, columns, strict=True)
        ]
        names = [as_text(name) for name, keep in zip(head, used, strict=True) if keep]
        arrays = [as_array(column) for column, keep in zip(columns, used, strict=True) if keep]
        super().__init__(pa.Table.from_arrays(arrays, names), path)
        self.stamp = stamp
        if len(sheets) > 1 and not inside:
            self.remarks = (
                f"{path}: the first of {len(sheets)} sheets is read, {sheet!r}; for another one "
                f"write {file}{INSIDE}{shortened(sheets[1])}.",
            )


def read_sheet(file: str, wanted: str) -> tuple[list[str], list[Sequence[Any]], str]:
    """Names of all sheets; the lines of the wanted one, or the first; and its name."""

    def chosen(sheets: list[str]) -> str:
        if wanted and wanted not in sheets:
            raise BadRowsError(f"{file} has no sheet {wanted!r}; it has {', '.join(sheets)}.")
        return wanted or sheets[0]

    try:
        from python_calamine import CalamineWorkbook

        book = CalamineWorkbook.from_path(file)
        sheet = chosen(book.sheet_names)
        return book.sheet_names, book.get_sheet_by_name(sheet).to_python(), sheet
    except ImportError:
        pass
    try:
        import pandas

        with pandas.ExcelFile(file) as workbook:
            sheet = chosen(list(map(str, workbook.sheet_names)))
            frame = workbook.parse(sheet, header=None, dtype=object, keep_default_na=False)
            return list(map(str, workbook.sheet_names)), frame.values.tolist(), sheet
    except ImportError as error:
        raise MissingExtraError(
            f"{file} is a workbook, which is read with python-calamine; install it with: pip "
            "install python-calamine. Or save the sheet as CSV (in Excel: File, Save As, CSV "
            "UTF-8) and give that."
        ) from error


def as_array(cells: Sequence[Any]) -> Any:
    """A column of one type: numbers, dates, times or truth values; text where they are mixed."""
    cells = [None if cell in NOTHING else cell for cell in cells]
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float, timedelta}:
        numbers = [c.total_seconds() if isinstance(c, timedelta) else c for c in cells]
        whole = all(number is None or float(number).is_integer() for number in numbers)
        return pa.array(numbers).cast(pa.int64()) if whole else pa.array(numbers, pa.float64())
    if kinds <= {date, datetime}:
        dates = [
            c if c is None or isinstance(c, datetime) else datetime.combine(c, time())
            for c in cells
        ]
        return pa.array(dates, pa.timestamp("us"))
    if kinds in ({bool}, {time}):
        return pa.array(cells)
    return pa.array([None if cell is None else as_text(cell) for cell in cells], pa.string())


def as_text(cell: Any) -> str:
    """A cell as one would type it: 3 for 3.0."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat(" ") if isinstance(cell, datetime) else str(cell)


EXCEL = TableFormat(ExcelTable)
