# Every target prepares what it needs on a fresh machine: a virtual environment in .venv with the
# package and its development tools. It is prepared again only when pyproject.toml changes.
# `rm -rf .venv` starts over. PYTHON=python3.12 chooses the interpreter (3.11 or newer).

PYTHON ?= python3
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
BIN := .venv/bin
READY := .venv/.ready
CHECKED := src tests $(wildcard benchmarks) examples
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

.DEFAULT_GOAL := test
.PHONY: test lint counted uncounted format demo bench campaign power-cut clean

# Installs the package with an extra.
define install
	@if command -v uv >/dev/null; then \
	  test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) .venv; \
	  uv pip install --quiet --python $(BIN)/python -e '.[$(1)]'; \
	else \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'; \
	  test -x $(BIN)/python || $(PYTHON) -m venv .venv; \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[$(1)]'; \
	fi
	@touch $@
endef

$(READY): pyproject.toml
	$(call install,dev)

.venv/.campaign: $(READY)
	$(call install,campaign)

# Lint is done by one core; the other begins with the tests meanwhile.
test: $(READY)  ## Everything a change must pass: lint, types, walls, tests, coverage, no unlisted skips.
	@$(MAKE) --no-print-directory --jobs=2 lint counted
	@$(MAKE) --no-print-directory uncounted

# Tests of modules, counting the lines they reach.
counted: $(READY)
	$(BIN)/python -m pytest -q --numprocesses=2 --dist=worksteal --part=counted --cov --cov-report=term

# Crashes, kills, faults, sweeps and tests of the whole.
uncounted: $(READY)
	$(BIN)/python -m pytest -q --numprocesses=2 --dist=worksteal --part=uncounted

lint: $(READY)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --no-error-summary $(CHECKED)
	$(BIN)/lint-imports --no-logo

format: $(READY)
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

demo: $(READY)
	@$(BIN)/holdfast demo

bench: $(READY)
	@$(BIN)/python -m benchmarks

# The same tests with the harnesses at full size: more crash points, faults, flips and examples. No test begins
# after so many minutes; the next run goes on with what is left, for as long as the source stays the same.
CAMPAIGN_MINUTES ?= 60
campaign: .venv/.campaign
	$(BIN)/python -m pytest --campaign --campaign-minutes=$(CAMPAIGN_MINUTES) -q \
	  --numprocesses=2 --dist=loadscope -o faulthandler_timeout=1800

# Cuts the power under a real file system on a virtual device, which only root may set up. Its mounts
# are its own: a copy of one in another namespace would keep a file system alive that lost its power.
power-cut: $(READY)
	$(AS_ROOT) unshare --mount $(BIN)/python -m tests.power.power_cut

clean:
	rm -rf build dist htmlcov .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find src tests $(wildcard benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +
