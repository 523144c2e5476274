# Everything here needs only make and Python 3.11 or later; packages come from the package index.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEMO := .venv/.demo

.PHONY: help demo test docs browser bench format constraints clean
.DEFAULT_GOAL := help

# The tests start many a Python, which would each compile all of torch for itself.
unexport PYTHONDONTWRITEBYTECODE

help: ## say what each target does
	@sed -n 's/^\([a-z]*\):.*## /make \1: /p' Makefile

demo: $(DEMO) ## train small networks in seven ways and write a report, in two minutes
	@$(BIN)/python -m calibrant.demo

test: $(INSTALLED) browser ## everything CI checks
	@echo "== format ==" && $(BIN)/ruff format --check .
	@echo "== lint ==" && $(BIN)/ruff check .
	@echo "== types ==" && $(BIN)/mypy
	@echo "== import contract ==" && $(BIN)/lint-imports --no-logo
	@echo "== tests ==" && OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses logical \
		--dist loadfile --no-loadscope-reorder

docs: $(INSTALLED) ## build the documentation site into site/
	@$(BIN)/python docs/site/build.py --out site && echo "open site/index.html"

bench: $(INSTALLED) ## time the measures on this CPU, and render the tracked tables
	@$(BIN)/python benchmarks/measures.py && $(BIN)/python benchmarks/render.py

format: $(INSTALLED) ## rewrite the code the way `make test` wants it
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

constraints: $(INSTALLED) ## pin today's versions of what pyproject.toml asks for
	@$(BIN)/pip install -q uv
	@echo "torch==2.13.0" > .venv/torch.txt
	@$(BIN)/uv pip compile --universal --python-version 3.11 --all-extras --upgrade \
		--no-config --no-header --no-annotate --quiet -c .venv/torch.txt pyproject.toml \
		| grep -vE '^(cuda|nvidia)' > .venv/constraints.txt
	@(echo "# Versions this package is tested with. Made by: make constraints" \
		&& cat .venv/constraints.txt) > constraints.txt

clean: ## remove caches and built files (for a new environment: rm -r .venv)
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist site
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

# The environment, made once and brought up to date when what it depends on changes.
$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into .venv (a minute or two) ..."
	@$(BIN)/pip install -qq --no-compile -c constraints.txt -e '.[test]'
	@touch $@ $(DEMO)

# What the demo needs is little, and part of the above.
$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what the demo needs into .venv (a minute) ..."
	@$(BIN)/pip install -qq --no-compile -c constraints.txt -e '.[demo]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"calibrant needs Python 3.11 or later; name one: make PYTHON=python3.11 ...")'
	@$(PYTHON) -m venv .venv

# The browser in which the tests open pages. Where it cannot be had, those tests say so and rest.
browser:
	@command -v chromium > /dev/null || ! test "$$(id -u)" = 0 || ! command -v apt-get > /dev/null \
		|| (echo "installing chromium, once ..."; export DEBIAN_FRONTEND=noninteractive; \
		timeout 300 apt-get install -y -qq chromium || (apt-get update -qq \
		&& timeout 300 apt-get install -y -qq chromium)) > /dev/null 2>&1 || true
