# PYTHON=... picks the interpreter that .venv is made from; `make clean` first to change it.
VENV := .venv
BIN := $(VENV)/bin
CODE := $(wildcard src tests benchmarks dashboards docs/conf.py docs/generators examples scripts/join-news scripts/take-pictures scripts/take-screenshots scripts/write-dashboards scripts/write-docs scripts/write-types)
# node and npm of the environment, where the system has none.
NPM := cd web && PATH="$(CURDIR)/$(BIN):$$PATH" npm
WORKERS := 2
# Test files are shared out in the order of their folders, so that the many short ones come last.
# One worker more than cores: tests wait for other processes a third of the time.
PYTEST := $(BIN)/python -m pytest --numprocesses=3 --dist=loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
# One install at a time, also under -j; the checks come after them and share nothing.
ifneq ($(MAKECMDGOALS),checks)
.NOTPARALLEL:
endif
.PHONY: help setup test checks demo fmt lint types contracts page web dashboards fuzz unit wheel docs bench clean

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.ready-dev ## Make .venv with everything needed to work on Rollscope

test: $(VENV)/.ready-web $(VENV)/.ready-programs ## Run every check and test; does its own set-up
	@$(MAKE) --no-print-directory --jobs=$(WORKERS) --output-sync=target checks
	@$(PYTEST)

checks: lint types contracts page wheel ## Run every check but the tests

demo: $(VENV)/.ready-demo ## Train a tiny policy and show it live; does its own set-up
	@$(BIN)/rollscope demo

fmt: $(VENV)/.ready-web ## Format the code and apply safe lint fixes
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)
	@$(NPM) run --silent fmt

lint: setup ## Check style and formatting
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)

types: setup ## Check types
	@$(BIN)/mypy

contracts: setup ## Check that imports point down the layers, and that dashboards are their source's
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/write-dashboards --check

page: $(VENV)/.ready-web ## Check the page: types, style, tests, and that its built files are its source's
	@$(BIN)/python scripts/write-types --check
	@$(NPM) run --silent check
	@$(NPM) test --silent
	@$(NPM) run --silent build -- --check

web: $(VENV)/.ready-web ## Build the page into the package
	@$(BIN)/python scripts/write-types
	@$(NPM) run --silent build

dashboards: setup ## Write the dashboards into the package
	@$(BIN)/python scripts/write-dashboards

fuzz: setup ## Let the property tests try cases that they have never tried
	@$(BIN)/python -m pytest -q tests/property --hypothesis-profile=fuzz

unit: setup ## Run the fast tests only
	@$(PYTEST) $(wildcard tests/unit tests/property)

wheel: setup ## Build the wheel into dist/
	@rm -rf dist
	@$(BIN)/python -m build --wheel --no-isolation

docs: setup ## Write the generated pages of docs/, and the site into site/
	@$(BIN)/python scripts/write-docs
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --fresh-env --write-all --jobs=$(WORKERS) --doctree-dir=.sphinx_cache docs site
	@echo "site/index.html"

bench: $(VENV)/.ready-bench ## Measure everything against its rivals
	@$(BIN)/python benchmarks/bench_overhead.py
	@$(BIN)/python benchmarks/bench_integrations.py
	@$(BIN)/python benchmarks/bench_stacks.py
	@$(BIN)/python benchmarks/bench_store.py
	@$(BIN)/python benchmarks/bench_query.py
	@$(BIN)/python benchmarks/bench_live.py
	@$(BIN)/python benchmarks/bench_timeline.py
	@$(BIN)/python benchmarks/bench_page.py
	@$(BIN)/python benchmarks/bench_clickhouse.py
	@$(BIN)/python benchmarks/bench_runner.py
	@$(BIN)/python benchmarks/bench_ray.py
	@$(BIN)/python benchmarks/bench_ingest.py
	@$(BIN)/python benchmarks/bench_metrics.py
	@$(BIN)/python benchmarks/bench_scrape.py
	@$(BIN)/python benchmarks/bench_install.py
	@$(BIN)/python benchmarks/bench_demo.py
	@$(BIN)/python benchmarks/bench_learning.py

clean: ## Remove the environment, caches and built files (runs/ is kept)
	@rm -rf $(VENV) web/node_modules dist site .sphinx_cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per set of dependencies: base, server, dev, bench.
$(VENV)/.ready-%: pyproject.toml src/rollscope/_version.py scripts/setup-venv
	@scripts/setup-venv $(VENV) $*

$(VENV)/.ready-web: web/package-lock.json $(VENV)/.ready-dev
	@$(NPM) ci --silent
	@touch $@

$(VENV)/.ready-programs: scripts/setup-programs $(VENV)/.ready-dev
	@scripts/setup-programs $@
