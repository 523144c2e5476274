# Everything here needs only make and Python 3.11 or later; packages come from the package index.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help demo test bench format constraints clean
.DEFAULT_GOAL := help

help: ## say what each target does
	@sed -n 's/^\([a-z]*\):.*## /make \1: /p' Makefile

demo: $(INSTALLED) ## train with and without ESD and compare, in about a minute
	@$(BIN)/python -m calibrant.demo

test: $(INSTALLED) ## everything CI checks
	@echo "== format ==" && $(BIN)/ruff format --check .
	@echo "== lint ==" && $(BIN)/ruff check .
	@echo "== types ==" && $(BIN)/mypy
	@echo "== import contract ==" && $(BIN)/lint-imports --no-logo
	@echo "== tests ==" && OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses logical --dist loadfile

bench: $(INSTALLED) ## time the measures on this CPU, and render the tracked tables
	@$(BIN)/python benchmarks/measures.py && $(BIN)/python benchmarks/render.py

format: $(INSTALLED) ## rewrite the code the way `make test` wants it
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

constraints: $(INSTALLED) ## pin today's versions of what pyproject.toml asks for
	@$(BIN)/pip install -q uv
	@echo "torch==2.13.0" > .venv/torch.txt
	@$(BIN)/uv pip compile --universal --python-version 3.11 --all-extras --upgrade \
		--no-config --no-header --no-annotate --quiet -c .venv/torch.txt pyproject.toml \
		| grep -vE '^(cuda|nvidia|triton)' > .venv/constraints.txt
	@(echo "# Versions this package is tested with. Made by: make constraints" \
		&& cat .venv/constraints.txt) > constraints.txt

clean: ## remove caches and built files (for a new environment: rm -r .venv)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

# The environment, made once and brought up to date when what it depends on changes.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"calibrant needs Python 3.11 or later; name one: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv (a minute or two) ..."
	@$(BIN)/pip install -qq --no-compile -c constraints.txt -e '.[test]'
	@touch $@
