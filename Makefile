# Everything a newcomer needs: `make demo`, `make test`. Each target sets up what it uses.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests side by side, a file in one process; compiled code has threads of its own, so few processes fill the cores.
PARALLEL := -n 2 --dist loadfile

.PHONY: help venv demo reproduce docs test test-slow test-browser test-torch oracles browser bench cold check clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         classify, forecast and explain real series beside MiniRocket and RBF, and save a picture"
	@echo "make reproduce    every figure and table of the papers, small: records, figures, report under results/quick"
	@echo "make docs         build the documentation into site/"
	@echo "make test         run the tests; those in a browser only where there is one"
	@echo "make test-slow    run the long tests too"
	@echo "make test-browser install Debian's Chromium where it is missing, and run the tests in it"
	@echo "make test-torch   install PyTorch, and run the tests of the array engine with it"
	@echo "make oracles      compute the stored high-precision values anew: an hour, ten minutes with gmpy2"
	@echo "make bench        measure speed against NumPy and JAX in one run"
	@echo "make cold         measure what first calls cost: imports and compilation"
	@echo "make check        ruff, strict types, tests"
	@echo "make venv         only create $(VENV) with everything a developer needs"

# One stamp per set of extras, so that each target installs what it uses and nothing twice.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

venv: $(VENV)/.installed-dev

demo: $(VENV)/.installed-demo
	$(BIN)/rntk demo

reproduce: $(VENV)/.installed-reproduce
	$(BIN)/rntk reproduce all --quick --jobs 2

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not slow" $(PARALLEL)

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PARALLEL)

# A browser that does not start is a failure here; `make test` skips these tests where there is none.
test-browser: $(VENV)/.installed-browser-test browser
	RNTK_BROWSER_REQUIRED=1 $(BIN)/python -m pytest tests/browser

browser:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then \
	  echo "make test-browser: there is no apt-get here; install chromium and chromedriver by hand" >&2; exit 1; fi; \
	if [ "$$(id -u)" = 0 ]; then as_root=; \
	elif command -v sudo >/dev/null; then as_root=sudo; \
	else echo "make test-browser: have root install the packages chromium and chromium-driver" >&2; exit 1; fi; \
	$$as_root apt-get update -qq && \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver

# PyTorch is large, so `make test` does without; JAX and array-api-strict run there.
test-torch: $(VENV)/.installed-torch-test
	$(BIN)/python -c "import torch"
	$(BIN)/python -m pytest -m "not slow" tests/engine/test_array_engine.py

# Only what changed since, unless told: ARGS="--again", ARGS="erf sin".
oracles: $(VENV)/.installed-test
	$(BIN)/python -m tests.oracles.make_battery_values $(ARGS)

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/gram.py

cold: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/cold.py

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not slow"

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
