# What a person or a machine does here: `make test`, `make demo`, `make help` for the rest.
# A virtual environment in .venv holds all that is installed; stamp files in it remember what for, so a second
# run starts at once and a change of setup.py installs again.

VENV := .venv
PY := $(VENV)/bin/python
SETUP := setup.py beam_hedge/_version.py tools/install.py

# The first interpreter that is new enough: `python3` is 3.9 on some systems that have a newer one beside it.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python3.10 python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for name in $(CANDIDATES); do \
	$$name -c "$(NEW_ENOUGH)" 2>/dev/null && echo $$name && exit; done; echo python3)

# Packages are installed without bytecode, which is quick; Python writes it at the first import. With this
# variable set it would compile Beam again at every start, 6 s each time.
unexport PYTHONDONTWRITEBYTECODE
# The project's own environment, not another one that happens to be active.
unexport PYTHONHOME VIRTUAL_ENV

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test lint types docs format coverage audit demo bench bench-full clean

help:  ## Show these lines
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*## */: /' | while IFS= read -r line; do echo "make $$line"; done

test: lint types docs  ## Check format, lint, types and documentation, then run all tests
	$(PY) -m pytest -n 2

lint: $(VENV)/dev.stamp  ## Check format and lint, and look for what is unsafe
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m bandit -q -r beam_hedge pipelines -c pyproject.toml

types: $(VENV)/dev.stamp  ## Check types
	$(PY) -m mypy

docs: $(VENV)/dev.stamp  ## Build the API reference into build/docs; a warning is an error
	$(PY) -m sphinx -W --keep-going -n -q -b html docs/api build/docs

format: $(VENV)/dev.stamp  ## Rewrite files in the project's format, and mend what can be mended
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .

coverage: $(VENV)/dev.stamp  ## Run all tests and show which lines and branches none of them reaches
	$(PY) -m pytest -n 2 --cov=beam_hedge --cov-branch --cov-report=term-missing:skip-covered

audit: $(VENV)/dev.stamp $(VENV)/audit.stamp  ## Look up all that is installed in an advisory database, over the network
	$(PY) tools/audit.py

demo: $(VENV)/demo.stamp  ## Publish real data with and without hedging, print a table, save a picture
	$(PY) -m demo

bench: $(VENV)/bench.stamp  ## Run the benchmarks, each once and short; pages with pictures in benchmarks/results
	$(PY) -m benchmarks.tail_latency --quick
	$(PY) -m benchmarks.throughput --quick
	$(PY) -m benchmarks.overhead --quick
	$(PY) -m benchmarks.scaling --quick
	$(PY) -m benchmarks.cost --quick
	$(PY) -m benchmarks.tiny_bundles --rounds 1 --seconds 1
	$(PY) -m benchmarks.connection_stall --quick

bench-full: $(VENV)/bench.stamp  ## Run the benchmarks for figures to publish, two and a half hours on a quiet machine
	$(PY) -m benchmarks.tail_latency
	$(PY) -m benchmarks.throughput
	$(PY) -m benchmarks.overhead
	$(PY) -m benchmarks.scaling
	$(PY) -m benchmarks.cost
	$(PY) -m benchmarks.dead_letters
	$(PY) -m benchmarks.tiny_bundles
	$(PY) -m benchmarks.connection_stall
	$(PY) -m benchmarks.long_outage
	$(PY) -m benchmarks.steady_memory

clean:  ## Remove the virtual environment and everything that tools left behind
	rm -rf $(VENV) build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c "$(NEW_ENOUGH)" 2>/dev/null || { echo "make: Python 3.10 or newer is needed, and '$(PYTHON)' is not. Name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null || { echo "make: '$(PYTHON)' has no venv module. Install it (Debian, Ubuntu: apt install python3-venv), or name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Each stamp is one set of extras.
$(VENV)/%.stamp: $(SETUP) | $(PY)
	@echo "Installing beam-hedge[$*] and what it needs into $(VENV) ..."
	$(PY) tools/install.py $*
	@touch $@
