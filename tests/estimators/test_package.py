"""What importing biglp loads, and the names it offers."""

import pytest

import biglp
from cli_tools import run_python


def test_importing_biglp_loads_no_heavy_library():
    heavy = ("torch", "dask", "distributed", "mpi4py", "matplotlib", "starlette")
    code = (
        "import sys, biglp.plot, numpy as np; X = np.random.default_rng(0).normal(size=(60, 2));"
        "biglp.LowRankLabelPropagation().fit(X, np.arange(60) % 3 - 1).predict(X);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert run_python(code).stdout.strip() == "[]"


def test_public_names():
    assert biglp.__all__[-1] == "__version__"
    for name in biglp.__all__:
        assert hasattr(biglp, name)
    assert "LowRankLabelPropagation" in biglp.__all__
    visible = {
        name
        for name, value in vars(biglp).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("biglp")
    }
    assert visible <= set(biglp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'LabelSpreading'"):
        _ = biglp.LabelSpreading
