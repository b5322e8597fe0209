# The whole daily vocabulary. Everything runs in .venv, which `setup` makes; no other command is needed first.

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench docs clean
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# Any Python from 3.11 to 3.13; `make setup PYTHON=python3.13` takes another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo "$$p" && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := runs/demo.zarr

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.ready ## make .venv with the locked versions and the program in it

# Made again only when the lock file or the project's metadata change.
.venv/.ready: requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo "no Python 3.11, 3.12 or 3.13 found; give one: make setup PYTHON=/path/to/python" >&2; exit 1; fi
	@echo "setting up .venv with the versions of requirements.lock (about a minute, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install --use-pep517 -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## run a small real sweep: a dataset and a phase diagram, in minutes
	$(BIN)/spheresweep run experiment=demo store.path=$(DEMO)
	$(BIN)/spheresweep figures $(DEMO) phase_diagram
	@printf '\ndataset: %s\nfigure:  %s\n' $(DEMO) $(DEMO:.zarr=-figures)/phase_diagram.png

test: setup ## run all tests
	$(BIN)/python -m pytest

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup ## run the benchmarks beside the peers; with QUICK=1, only see that they run
	@$(PIP) install -r requirements-bench.lock
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

docs: setup ## build the documentation site into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean: ## remove what the targets made, except datasets in runs/
	rm -rf .venv build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find pipeline tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
