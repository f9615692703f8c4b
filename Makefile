# Everything works in .venv, which is made where it is missing; nothing is installed outside it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORKERS ?= 3
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check selftest docs clean

help: ## list the targets
	@awk -F ' ## ' '/^[a-z]+:.* ## / { sub(/:.*/, "", $$1); printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## the whole way on recorded completions: no key, no network, no model (ARGS=--json)
	$(BIN)/evolve demo $(ARGS)

test: $(INSTALLED) ## the test suite (ARGS="-k gate"; WORKERS=8 where there are more than two cores)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

check: $(INSTALLED) ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

selftest: $(INSTALLED) ## the gate against simulated runs with known answers
	$(BIN)/evolve selftest $(ARGS)

docs: $(INSTALLED) ## rewrite what docs/ takes from the code
	$(BIN)/python docs/generate.py

clean: ## remove .venv and what tools leave behind
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) \
		|| { rm -rf $(VENV); echo 'No venv: install it (Debian, Ubuntu: apt install python3-venv)' >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
