# Everything a newcomer needs: `make demo`, `make test`. Each target sets up what it uses.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help venv demo test test-slow bench check clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      classify a real data set with the RNTK and with RBF, and save a picture"
	@echo "make test      run the tests"
	@echo "make test-slow run the long tests too"
	@echo "make bench     measure speed against NumPy and JAX in one run"
	@echo "make check     ruff, strict types, tests"
	@echo "make venv      only create $(VENV) with everything a developer needs"

# One stamp per set of extras, so that each target installs what it uses and nothing twice.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

venv: $(VENV)/.installed-dev

demo: $(VENV)/.installed-demo
	$(BIN)/rntk demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/gram.py

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not slow"

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
