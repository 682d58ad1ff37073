"""From what a user names to files in order."""

from __future__ import annotations

import random

import pytest

from biglp._core.errors import BadRowsError
from biglp._files.uri import split_inside
from biglp._rows.format import ending
from biglp._rows.opening import find_files, natural_key


def test_numbers_in_names_are_numbers():
    names = [
        "a/emb_2.npy",
        "a/emb_10.npy",
        "a/emb_10b.npy",
        "a/emb_010.npy",
        "a/x.npy",
        "a2/emb_1.npy",
        "a10/emb_1.npy",
    ]
    names[2:4] = ["a/emb_010.npy", "a/emb_10b.npy"]
    shuffled = random.Random(0).sample(names, len(names))
    expected = ["a/emb_2.npy", "a/emb_010.npy", "a/emb_10.npy", "a/emb_10b.npy", *names[4:]]
    assert sorted(shuffled, key=natural_key) == expected


@pytest.mark.parametrize("kind", [".npy", ".parquet", ".csv"])
def test_folders_and_patterns_have_one_order(tmp_path, kind):
    for name in ("b_10", "b_9", "B_1", "b_100"):
        (tmp_path / f"{name}{kind}").touch()
    (tmp_path / "_SUCCESS").touch()
    expected = [str(tmp_path / f"{name}{kind}") for name in ("B_1", "b_9", "b_10", "b_100")]
    assert find_files(tmp_path) == find_files(f"{tmp_path}/*{kind}") == expected


def test_arrays_inside_files(tmp_path):
    (tmp_path / "a.h5").touch()
    assert split_inside(f"{tmp_path}/a.h5::g/x") == (f"{tmp_path}/a.h5", "::g/x")
    assert find_files(f"{tmp_path}/*.h5::x") == [f"{tmp_path}/a.h5::x"]
    assert find_files(f"{tmp_path}::x") == [f"{tmp_path}/a.h5::x"]
    assert ending("a.h5::x") == ".h5"
    (tmp_path / "b::c.npy").touch()  # a name may hold it, however odd
    assert find_files(tmp_path / "b::c.npy") == [str(tmp_path / "b::c.npy")]
    with pytest.raises(BadRowsError, match=r"there is no file .*c\.h5"):
        find_files(f"{tmp_path}/c.h5::x")
