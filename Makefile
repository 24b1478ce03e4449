# Everything here sets itself up: it needs make and Python >= 3.11, nothing else.

VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
CORE := --cov --cov-report=term
SECONDS := 60

.DEFAULT_GOAL := help
.PHONY: help demo test test-all sweep sanitize lint format docs wheel bench fuzz clean

help:
	@echo "make demo      train a vision transformer on real digits in three ways and measure its memory"
	@echo "make test      the tests, warnings as errors"
	@echo "make test-all  the same with the slow tests, with coverage of the core (twice the time), and budgets on 16 threads"
	@echo "make sweep     every kernel against its reference and PyTorch, over layouts, dtypes, sizes and threads"
	@echo "make sanitize  a part of it with kernels built with -fsanitize=address,undefined"
	@echo "make lint      ruff and mypy --strict"
	@echo "make docs      build the documentation into site/"
	@echo "make wheel     build the wheel with compiled kernels into dist/ (RUSHLIGHT_MACHINE=aarch64 for another machine)"
	@echo "make fuzz      random programs against PyTorch for SECONDS=60 (more options with ARGS)"
	@echo "make bench     compare with PyTorch in one run (installs torch into the environment)"

# One stamp per group of requirements, so that each group is installed once and again when pyproject.toml changes.
$(VENV)/.ready-%: pyproject.toml
	@test -n "$(PYTHON)" || { echo "rushlight needs Python >= 3.11: none found, set PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || { echo "setting up $(VENV) with $(PYTHON)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing rushlight [$*] into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

demo: $(VENV)/.ready-progress
	@$(BIN)/rushlight demo

test: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n auto -m "not slow" $(ARGS)

test-all: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n auto $(CORE) $(ARGS)
	OMP_NUM_THREADS=16 $(BIN)/python -m pytest -n auto tests/memory tests/stores $(ARGS)

sweep: $(VENV)/.ready-test
	$(BIN)/python tools/sweep_kernels.py $(ARGS)

sanitize: $(VENV)/.ready-test
	$(BIN)/python tools/sanitize.py $(ARGS)

lint: $(VENV)/.ready-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/stubs.py --check

format: $(VENV)/.ready-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python tools/stubs.py

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: $(VENV)/.ready-wheel
	@echo "building the wheel: kernels are compiled for three kinds of processors, which takes three to six minutes"
	$(BIN)/python -m build --wheel --no-isolation

bench: $(VENV)/.ready-parity
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/bench.py --json bench.json --picture bench.svg $(ARGS)

# Without PyTorch, which .ci/run installs and nothing here demands, rushlight is compared with itself.
fuzz: $(VENV)/.ready-test
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS) $(ARGS)

clean:
	rm -rf $(VENV) .sanitized build dist site .pytest_cache .mypy_cache .ruff_cache .coverage*
