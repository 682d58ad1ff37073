# Two commands set everything up on a machine with Python 3.11 or newer: make demo, make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One stamp file a set of extras, renewed when the project's requirements change.
READY       := $(VENV)/.ready
READY_TESTS := $(VENV)/.ready-tests
# Tests run in so many processes; a file's tests stay together, because they share clusters.
JOBS ?= 2

.PHONY: demo test lint bench clean

demo: $(READY)
	$(BIN)/biglp demo

test: $(READY_TESTS)
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile

lint: $(READY_TESTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY_TESTS)
	$(BIN)/biglp reproduce all --quick -o bench-out
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/sizes.py shapes,small
	test -z "$$BIGLP_DATA" || $(BIN)/python benchmarks/sizes.py line
	$(BIN)/python benchmarks/files.py 1M --memory 150MB --methods random,kmeans,anchors
	$(BIN)/python benchmarks/files.py 10M --memory 150MB --methods random,kmeans,anchors
	$(BIN)/python benchmarks/files.py 10M --memory 4GB

clean:
	rm -rf $(VENV) build dist bench-out demo-out reproduce-out

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(READY_TESTS): pyproject.toml constraints.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt \
	    --editable ".[test,lint,plot,mpich,dask,gpu,fast,hdf5,zarr,lake,label]"
	@touch $@
