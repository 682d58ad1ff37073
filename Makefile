# Two commands set everything up on a machine with Python 3.11 or newer: make demo, make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One stamp file a set of extras, renewed when the project's requirements change.
READY       := $(VENV)/.ready
READY_TESTS := $(VENV)/.ready-tests
READY_DOCS  := $(VENV)/.ready-docs
# Tests run in so many processes; a file's tests stay together, because they share clusters.
JOBS ?= 2

.PHONY: demo test lint docs words prose reproduce bench campaign dist clean

demo: $(READY)
	$(BIN)/biglp demo

test: $(READY_TESTS)
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile

lint: $(READY_TESTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One BLAS thread: the examples are small, and two cores are shared by several of them.
docs: $(READY_DOCS)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PATH="$(CURDIR)/$(BIN):$$PATH" \
	    $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build/html
	$(BIN)/python docs/_ext/check_site.py docs/_build/html

# Words of each page beside docs/budget.toml, and how long its sentences are.
words prose:
	$(PYTHON) docs/_ext/prose.py $@

# The paper's experiments: minutes with QUICK=--quick, hours without.
reproduce: $(READY_TESTS)
	$(BIN)/python -m paper reproduce all $(QUICK) -o reproduce-out

bench: $(READY_TESTS)
	$(BIN)/python -m paper reproduce all --quick -o bench-out
	$(BIN)/python benchmarks/speed.py --keep
	$(BIN)/python benchmarks/sizes.py shapes,labels,small
	test -z "$$BIGLP_DATA" || $(BIN)/python benchmarks/sizes.py line
	$(BIN)/python benchmarks/files.py 1M --memory 150MB --methods random,kmeans,anchors --keep
	$(BIN)/python benchmarks/files.py 10M --memory 150MB --methods random,kmeans,anchors --keep
	$(BIN)/python benchmarks/files.py 10M --memory 4GB --keep

# Wheels and sdist: built twice, compared, and tried in an empty environment.
dist: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python packaging/try_dist.py dist

# An hour of attacks at random; docs/reliability.md says what they are. MINUTES=5 SEED=7 for another one.
MINUTES ?= 60
SEED    ?= 0
campaign: $(READY_TESTS)
	$(BIN)/python tests/campaign --minutes $(MINUTES) --seed $(SEED) -o campaign-out

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/api bench-out demo-out reproduce-out \
	    campaign-out

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml hatch_build.py $(wildcard src/biglp/_compiled/c/*) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(READY_TESTS): pyproject.toml constraints.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt \
	    --editable ".[test,lint,plot,mpich,dask,gpu,hdf5,zarr,lake,label,text]" ./packages/text-en
	@touch $@

$(READY_DOCS): pyproject.toml constraints.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable ".[docs]"
	@touch $@
