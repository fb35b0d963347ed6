# The same words as in the README and in .ci/run. `make help` lists them.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
SHELL  := /bin/bash
export PYTHONPATH := $(CURDIR):$(CURDIR)/plugins

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo demo-reset up test test-all lint format lock clean \
        bench-engine bench-ledger bench-scale bench-csa bench-peers bench-paper evidence

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/uv:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or 3.12 is needed: install it, or name it with 'make PYTHON=/path/to/python3.12 ...'."; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check uv==0.13.9

$(VENV)/.product: requirements.txt requirements-demo.txt | $(BIN)/uv
	@echo "Installing the pinned packages into $(VENV) (once) ..."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.txt -r requirements-demo.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.product requirements-test.txt requirements-lint.txt requirements-oracle.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.txt -r requirements-test.txt -r requirements-lint.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -r requirements-oracle.txt
	@touch $@

$(VENV)/.browser: $(VENV)/.dev requirements-browser.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-browser.txt
	@touch $@

$(VENV)/.bench: $(VENV)/.dev requirements-bench.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-bench.txt
	@touch $@

setup: $(VENV)/.product  ## create .venv from the pinned requirements

setup-dev: $(VENV)/.dev  ## the same, with the tools of test and lint

demo: setup  ## a real, paid-for release of three waves on SQLite and a local folder
	@$(BIN)/python -m tools.demo

demo-reset:  ## forget the demo: its ledger, snapshots, keys and releases
	@$(PYTHON) tools/demo_reset.py

up: setup  ## the Airflow UI on http://127.0.0.1:8080 with the demo loaded
	@$(BIN)/python -m tools.up

test: setup-dev  ## the tests (a few minutes)
	@$(BIN)/python -m pytest -m "not slow"

test-all: setup-dev $(VENV)/.browser  ## the tests and the slow suites: statistical, concurrency, browser
	@$(BIN)/python -m pytest

lint: setup-dev  ## ruff, mypy strict on include/, direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: setup-dev
	@$(BIN)/ruff check --fix-only --quiet . ; $(BIN)/ruff format .

bench-engine: setup-dev  ## the estimation engine against private-pgm, part by part
	@$(BIN)/python -m benchmarks.engine

bench-ledger: setup-dev  ## the ledger against a bare INSERT, with 1 to 16 writers
	@$(BIN)/python -m benchmarks.ledger

bench-scale: setup-dev  ## a release of five million rows, CPU by stage
	@$(BIN)/python -m benchmarks.scale

bench-csa: $(VENV)/.bench  ## the CSAPrivBayes paper's figures on Adult, with a guarantee that holds
	@$(BIN)/python -m benchmarks.csa --seeds 20

bench-paper: $(VENV)/.bench  ## the CuSyn paper's experiments with correct accounting (hours, goes on where it was stopped; ARGS=--quick: minutes)
	@$(BIN)/python -m benchmarks.paper $(ARGS)

bench-peers: setup-dev  ## other makers of private tables beside ours, in their own environments (hours; ARGS=--quick: minutes)
	@$(BIN)/python -m benchmarks.peers $(ARGS)

evidence: $(VENV)/.bench  ## docs/evidence.md and its plots from benchmarks/results
	@$(BIN)/python -m benchmarks.evidence

lock: $(BIN)/uv  ## compile the short requirements*.in into complete pins for 3.11 and 3.12
	@for f in requirements requirements-demo requirements-test requirements-lint requirements-bench requirements-browser; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header $$f.in -o $$f.txt; done
	@for f in dpmm opendp smartnoise; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header \
	    --override benchmarks/peers/overrides.txt benchmarks/peers/requirements-$$f.in -o benchmarks/peers/requirements-$$f.txt; done

clean: demo-reset  ## also remove the environment
	rm -rf $(VENV)
