# Every target prepares what it needs on a fresh machine: a virtual environment in .venv with the
# package and its development tools. It is prepared again only when pyproject.toml changes.
# `rm -rf .venv` starts over. PYTHON=python3.12 chooses the interpreter (3.11 or newer).

PYTHON ?= python3
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
BIN := .venv/bin
comma := ,
READY := .venv/.ready
CHECKED := src tests $(wildcard benchmarks) examples release
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

# Without compiled modules every process of a test compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := test
.PHONY: test test-browser test-frameworks setup-browser lint counted uncounted format demo bench compare campaign power-cut setup-machine fuzz mutate dist test-dist sbom docs clean

# Installs the package with extras into an environment. What is needed of it is compiled when it is first imported.
define install
	@if command -v uv >/dev/null; then \
	  test -x $(2)/bin/python || uv venv --quiet --python $(PYTHON) $(2); \
	  uv pip install --quiet --python $(2)/bin/python -e '.[$(1)]'; \
	else \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'; \
	  test -x $(2)/bin/python || $(PYTHON) -m venv $(2); \
	  $(2)/bin/python -m pip install -qq --disable-pip-version-check --no-compile -e '.[$(1)]'; \
	fi
	@touch $@
endef

$(READY): pyproject.toml
	$(call install,dev,.venv)

.venv/.campaign: $(READY)
	$(call install,campaign,.venv)

.venv/.fuzz: $(READY)
	$(call install,fuzz,.venv)

# The dashboard is tested in a real browser: Debian's, where none is there.
setup-browser:
	@command -v chromium chromium-browser google-chrome >/dev/null \
	  || { $(AS_ROOT) apt-get update -qq && $(AS_ROOT) apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

# The whole room of the browser: every page, dialog and key, axe in both themes, what 10,000 checkpoints take.
BROWSER_SECONDS ?= 900
test-browser: $(READY) setup-browser
	timeout $(BROWSER_SECONDS) $(BIN)/python -m pytest -q tests/browser --numprocesses=2 --dist=loadfile

# Lint is done by one core while the other collects. Both halves of the tests go on at once: many of one wait,
# for a lease to end or a server to start, and meanwhile the other has the core.
test: $(READY) setup-browser  ## Everything a change must pass: lint, types, walls, tests, coverage, no unlisted skips.
	@$(MAKE) --no-print-directory --jobs=3 lint counted uncounted

# Tests of modules, counting the lines they reach; `.venv/bin/coverage report` names those that were not.
counted: $(READY)
	$(BIN)/python -m pytest -q --numprocesses=2 --dist=worksteal --part=counted --cov --cov-report=

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

# Frameworks pin what they need, and their pins conflict: each has its own environment and its own minutes.
FRAMEWORKS := agent_framework burr crewai google_adk haystack llama_index openai_agents pydantic_ai
test-frameworks: $(FRAMEWORKS:%=test-framework-%)

.PRECIOUS: .venvs/%/.ready
.venvs/%/.ready: pyproject.toml
	@mkdir -p .venvs
	$(call install,$(subst _,-,$*)$(comma)framework-tests$(comma)sqlite,.venvs/$*)

# A framework's files are those that begin with its name.
test-framework-%: .venvs/%/.ready
	.venvs/$*/bin/mypy --no-error-summary --cache-dir=.venvs/$*/mypy src/holdfast/integrations/$**.py
	COVERAGE_FILE=.venvs/$*/coverage timeout $(FRAMEWORK_SECONDS) .venvs/$*/bin/python -m pytest -q tests/integrations \
	  --framework=$* $(FRAMEWORK_OPTIONS) --numprocesses=2 --dist=loadfile --cov-config=tests/integrations/coverage.ini --cov-report=term \
	  $(foreach file,$(wildcard src/holdfast/integrations/$**.py),--cov=holdfast.integrations.$(basename $(notdir $(file))))

FRAMEWORK_SECONDS ?= 600
# --campaign kills the samples after every commit.
FRAMEWORK_OPTIONS ?=

# Its store is kept, so that there is something to look at.
demo: $(READY)
	@$(BIN)/holdfast demo --store build/demo

bench: $(READY)
	@$(BIN)/python -m benchmarks

# Holdfast beside its peers, each in an environment of its own in build/peers: table, pictures and numbers in
# build/compare. COMPARE_OPTIONS=--full takes everybody to 2,000 turns, --write puts the result into the pages.
COMPARE_OPTIONS ?=
compare: $(READY)
	@$(BIN)/python -m benchmarks.compare $(COMPARE_OPTIONS)

# Harnesses at full size, with their controls: more crash points, faults, flips and examples. No test begins
# after so many minutes; the next run goes on with what is left, for as long as the source, and what is
# installed, stays the same.
# CAMPAIGN_OF=tests/machine takes only what needs a real machine. The result is in build/campaign/result.json.
CAMPAIGN_MINUTES ?= 60
CAMPAIGN_OF ?= tests
campaign: .venv/.campaign setup-machine
	$(BIN)/python -m pytest $(CAMPAIGN_OF) --campaign --campaign-minutes=$(CAMPAIGN_MINUTES) -q \
	  --numprocesses=2 --dist=loadscope -o faulthandler_timeout=1800

# Cuts the power under a real file system on a virtual device, which only root may set up. Its mounts
# are its own: a copy of one in another namespace would keep a file system alive that lost its power.
CUTS ?= 50
power-cut: $(READY) setup-machine
	$(AS_ROOT) unshare --mount $(BIN)/python -m tests.power --cuts $(CUTS)

# File systems, and a tracer. What cannot be had is told by whoever needs it.
MACHINE_PROGRAMS := mkfs.ext4 mkfs.xfs strace fusermount3
setup-machine: $(READY)
	@for program in $(MACHINE_PROGRAMS); do command -v $$program >/dev/null || missing=1; done; \
	  test -z "$${missing:-}" || { $(AS_ROOT) apt-get update -qq && $(AS_ROOT) apt-get install -y -qq \
	  --no-install-recommends e2fsprogs xfsprogs strace fuse3 libfuse2 >/dev/null 2>&1; } \
	  || echo "Not everything could be installed: what needs it is told as not run."

# Feeds every decoder what its coverage leads to, so many minutes divided among all; the next run goes on with the
# inputs that this one found. FUZZ_TARGETS names some of them.
FUZZ_MINUTES ?= 20
FUZZ_TARGETS ?=
fuzz: .venv/.fuzz
	@nice -n 19 $(BIN)/python -m tests.fuzz --minutes $(FUZZ_MINUTES) $(FUZZ_TARGETS)

# Puts small faults into recovery, retention and trail, in a copy, and tells which of them no test notices; the
# next run goes on. MUTATE_MODULES names some of them, as domain/retention.
MUTATE_MINUTES ?= 20
MUTATE_MODULES ?=
mutate: $(READY)
	@nice -n 19 $(BIN)/python -m tests.mutation --minutes $(MUTATE_MINUTES) $(MUTATE_MODULES)

# The documentation site, in build/site: built strictly, then looked at in a browser that reaches no other host.
# What pages link to in the checkout beside docs/ is taken along.
docs: $(READY) .venvs/docs/.ready setup-browser
	@rm -rf build/site && .venvs/docs/bin/zensical build --strict --clean --config-file mkdocs.yml
	@mkdir -p build/site/src/holdfast && cp -r src/holdfast/schemas build/site/src/holdfast/
	@sed -i 's#href="\.\./src/holdfast/schemas/#href="src/holdfast/schemas/#g' build/site/schemas.html
	@$(BIN)/python -m tests.built_site build/site

.venvs/docs/.ready: pyproject.toml
	@mkdir -p .venvs
	$(call install,docs,.venvs/docs)

# What makes a release has exact versions, in an environment of its own.
.venvs/release/.ready: release/requirements.txt
	@mkdir -p .venvs
	@test -x .venvs/release/bin/python || $(PYTHON) -m venv .venvs/release
	@.venvs/release/bin/python -m pip install -qq --disable-pip-version-check -r release/requirements.txt
	@touch $@

# Wheel and sdist in dist/, the same bytes whoever builds them.
dist: .venvs/release/.ready
	@.venvs/release/bin/python -m release.build

# The archives in empty environments: without extras, each extra alone, newest and lowest versions, from the sdist,
# with every Python that is here. TRIALS=core,server chooses some, TRIALS=left goes on. Only the installation needs a network.
DIST_SECONDS ?= 2700
TRIALS ?= all
test-dist: dist
	@timeout $(DIST_SECONDS) .venvs/release/bin/python -m release.trial $(TRIALS)

# What the wheel brings along, by extra, with licences: dist/sbom/.
sbom: dist
	@timeout $(DIST_SECONDS) .venvs/release/bin/python -m release.sbom

clean:
	rm -rf build dist htmlcov .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find src tests $(wildcard benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +
