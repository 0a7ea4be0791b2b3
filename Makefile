# make help lists the targets. Everything runs in .venv, which the first target that needs it makes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready-$(shell cat pyproject.toml requirements.lock 2>/dev/null | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: help setup train test test-all lint format tensorboard bench clean clean-all lock

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 14

# The marker's name carries a checksum of what was asked for and is written last: a failed or outdated
# installation is never taken for a good one, a finished one is never repeated.
$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "hotloop needs Python 3.10 or newer: make PYTHON=python3.12"; exit 1; }
	@rm -f $(VENV)/ready-*
	@$(BIN)/python -c "" 2>/dev/null || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev]'
	@touch $@

setup: $(READY)  ## make .venv with the exact versions of requirements.lock

train: $(READY)  ## train the translator with attention on the embedded corpus
	$(BIN)/python train.py $(ARGS)

test: $(READY)  ## run the tests (minutes)
	$(BIN)/python -m pytest $(ARGS)

test-all: $(READY)  ## run all tests, the slow ones and the notebooks too
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev,notebooks]'
	$(BIN)/python -m pytest -m "slow or not slow" $(ARGS)

lint: $(READY)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## mend style where it can be done by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

LOGDIR ?= runs
tensorboard: $(READY)  ## look at curves, pictures and translations of all runs (sweeps: LOGDIR=multirun)
	$(BIN)/tensorboard --logdir $(LOGDIR) $(ARGS)

bench: $(READY)  ## print the ratios of every file in benchmarks/ (ARGS=--quick for a short look)
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file $(ARGS) || exit 1; done

lock: $(READY)  ## renew requirements.lock from pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.10 --all-extras --no-header --no-annotate --quiet --upgrade pyproject.toml --output-file requirements.lock

clean:  ## remove caches of Python and tools
	rm -rf .pytest_cache .ruff_cache .mypy_cache build dist
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

clean-all: clean  ## remove the environment, generated data and all runs too
	rm -rf $(VENV) data runs multirun
