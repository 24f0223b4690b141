# Everything that a developer does, one word each. `make demo` and `make test` need Python and make only.
PYTHON ?= python3
BIN := .venv/bin
SPHINX = $(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet --jobs 2 --doctree-dir build/docs/doctrees
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --quiet
SOURCES := src tests benchmarks docs examples fuzzing rddl reproduction tools
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# Tests start many processes: each would compile the library anew if none kept the byte code.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install everything demo test slow lint format docs linkcheck bench fuzz boundscheck missions explorer reproduce audit dist clean

help:
	@echo "make demo       install into .venv and solve the paper's bandit"
	@echo "make test       lint, then run the tests"
	@echo "make slow       the tests that take long: clusters, processes that are killed, notebooks, statistics"
	@echo "make everything install what all tests need: Storm, RDDL (Chromium: apt install chromium)"
	@echo "make lint       ruff, mypy, the directions of imports, and links in the documents"
	@echo "make format     let ruff rewrite the sources"
	@echo "make docs       build the site into build/docs/html; warnings are errors"
	@echo "make linkcheck  follow the links to the web"
	@echo "make bench      measure the speed beside the C++ yardsticks, plain Python, programs and Storm"
	@echo "make fuzz       hold random problems against exact arithmetic (MINUTES=10, SEED=7, RESUME=1)"
	@echo "make boundscheck  the kernels' tests and two minutes of fuzzing with every array index checked (MINUTES=2)"
	@echo "make reproduce  run the paper's experiments again (an hour and a half on two cores; make reproduce QUICK=1: two minutes)"
	@echo "make missions   compare planners on exploration missions, ten seeds each (half an hour)"
	@echo "make explorer   build the program of explorer pages anew (needs node and npm; the built one is kept)"
	@echo "make audit      compare the installed packages with the list of known vulnerabilities (needs the network)"
	@echo "make dist       build the source archive and the wheel, twice and byte for byte the same, with their SHA-256"
	@echo "make clean      remove .venv and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Vulcan needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ .venv/installed

.venv/installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@ .venv/installed

.venv/installed-everything: pyproject.toml rddl/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,everything]' --editable ./rddl
	@touch $@ .venv/installed-dev .venv/installed

install: .venv/installed

everything: .venv/installed-everything

demo: .venv/installed
	@$(BIN)/vulcan solve bandit --set horizon=9 --bound "0.002*x" --gap 0

test: lint
	$(PYTEST) -m "not slow"

slow: .venv/installed-dev
	$(PYTEST) -m slow

lint: .venv/installed-dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_links.py

format: .venv/installed-dev
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

docs: .venv/installed-docs
	$(SPHINX) --builder html docs build/docs/html
	@echo "open build/docs/html/index.html"

linkcheck: .venv/installed-docs
	$(SPHINX) --define nb_execution_mode=off --builder linkcheck docs build/docs/linkcheck

bench: .venv/installed-dev
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[storm]'
	$(BIN)/python -m pytest benchmarks --quiet --capture=no

# With a seed, a campaign begins anew unless it is resumed.
fuzz: .venv/installed-dev
	$(if $(SEED),$(if $(RESUME),,rm -f build/fuzz/$(SEED).jsonl))
	$(BIN)/python -m fuzzing --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(if $(RESUME),--resume)

# Compiled code writes anywhere by a wrong index, unless Numba checks it. Checked code has a cache of its own.
CHECKED := NUMBA_BOUNDSCHECK=1 VULCAN_CACHE_DIR=$(CURDIR)/build/boundscheck/cache
CHECKED_TESTS := tests/exact tests/domains/exploration/test_compiled.py tests/execution/test_simulation.py \
  tests/model/test_compiled.py tests/baselines/test_forward_search.py tests/baselines/test_rao_star.py \
  $(addprefix tests/sampling/test_,growth.py local.py proof.py tree.py vulcan.py)
boundscheck: .venv/installed-dev
	mkdir -p build/boundscheck
	$(if $(SEED),rm -f build/boundscheck/$(SEED).jsonl)
	$(CHECKED) $(PYTEST) tests/kernels
	$(CHECKED) $(PYTEST) -m "not slow" $(CHECKED_TESTS)
	$(CHECKED) $(BIN)/python -m fuzzing --minutes $(or $(MINUTES),2) $(if $(SEED),--seed $(SEED)) --folder build/boundscheck

missions: .venv/installed-dev
	$(BIN)/vulcan solve exploration --bound "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)" --samples 262144 \
	  --output .venv/mission.vulcan
	$(BIN)/python examples/exploration/draw.py .venv/mission.vulcan exploration --outcomes docs/images/outcomes.png \
	  --visits docs/images/visits.png --risk docs/images/risk.png --animation docs/images/mission.gif
	$(BIN)/python benchmarks/exploration_table.py --seeds 10 --samples 65536 --page docs/examples/exploration.md

explorer:
	cd explorer && npm ci --silent && npm run --silent build

reproduce: .venv/installed-dev
	$(BIN)/python -m reproduction $(if $(QUICK),--quick)

audit: .venv/installed-dev
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	@$(BIN)/python tools/audit.py

dist: .venv/installed-dev
	@$(BIN)/python tools/dist.py

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache
