"""The page: tables without gaps, parts that are replaced one by one."""

import pytest

from paper.pages import Clock, Output, Part, markdown_table


def test_an_empty_cell_is_a_mistake():
    with pytest.raises(ValueError, match="'b' has an empty cell"):
        markdown_table(["a", "b"], [["1", " "]])


def test_a_part_run_again_alone_replaces_only_itself(tmp_path):
    output = Output(tmp_path)
    for name, body in (("runtime", "first"), ("scale", "other"), ("runtime", "second")):
        output.keep(Part(name, name, body, facts=Clock().facts()))
    page = (tmp_path / "paper.md").read_text()
    assert "second" in page
    assert "other" in page
    assert "first" not in page
