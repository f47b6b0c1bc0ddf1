# Every target sets up what it needs: a .venv with the locked packages, made once and again when
# requirements.lock or pyproject.toml change. Needs Python 3.11+ and, where Spark runs, a JDK 17+.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Passed on to pytest:  make test PYTEST_ARGS="-k sequence -x"
PYTEST_ARGS ?=
# How many processes share the tests. Each has a Spark session of its own (2 GB).
TEST_PROCESSES ?= 2
PYTEST = $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder
# Passed on to the benchmarks:  make bench BENCH_ARGS="--quick"
BENCH_ARGS ?=
# Passed on to uv:  make lock LOCK_ARGS=--upgrade
LOCK_ARGS ?=

# Recipes that start Spark begin with this. Workers must run the same Python as the driver, and the
# loopback address keeps Spark off the network.
WITH_SPARK = JAVA_HOME="$$($(BIN)/python tools/find_java.py)" || exit 1; \
	export JAVA_HOME SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON="$(CURDIR)/$(BIN)/python" \
	PYSPARK_DRIVER_PYTHON="$(CURDIR)/$(BIN)/python";

# Compiled modules are kept: else each of the many processes that tests start would compile all of Tocsin again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-fast test-slow test-power check bench docs lock clean

help: ## this list
	@echo "Tocsin: complex event recognition for Apache Spark."
	@echo
	@echo "New here? Run 'make demo'. Changed something? 'make check test-fast', then 'make test'."
	@echo
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/\1|\2/' \
		| while IFS='|' read -r target words; do printf '  make %-10s  %s\n' "$$target" "$$words"; done
	@echo
	@echo "Options: PYTHON=python3.12 (3.11 or newer), TEST_PROCESSES=1, PYTEST_ARGS='-k sequence', BENCH_ARGS=--quick, LOCK_ARGS=--upgrade."
	@echo "Spark needs a JDK 17 or newer; setup, test-fast, check and lock do not."

setup: $(READY) ## make .venv with all packages, as locked (about 1 GB, once)

$(READY): requirements.lock pyproject.toml
	@version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || \
		{ echo "Tocsin needs Python 3.11 or newer, and '$(PYTHON)' does not run: install it, or name another with make PYTHON=..." >&2; exit 1; }; \
	case $$version in 3.[0-9]|3.10|2.*) \
		echo "Tocsin needs Python 3.11 or newer, and '$(PYTHON)' is $$version: name another with make PYTHON=..." >&2; exit 1;; esac
	@echo "Setting up $(VENV); the first time takes a minute or two, most of it for Spark (450 MB)."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ echo "Python cannot make an environment: on Debian/Ubuntu, apt-get install python3-venv." >&2; exit 1; }
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## find frauds in a bundled stream, on a local Spark; a picture is in build/demo.svg
	@$(WITH_SPARK) $(BIN)/tocsin demo --picture build/demo.svg

test: $(READY) ## every test but the slow ones
	@$(WITH_SPARK) HYPOTHESIS_PROFILE=dev $(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-fast: $(READY) ## the tests that need no JVM, no compiler and no patience
	@HYPOTHESIS_PROFILE=fast $(PYTEST) -m "not spark and not compiled and not long and not slow" $(PYTEST_ARGS)

test-slow: $(READY) ## the slow tests: restarts, large data, and properties with many more examples
	@$(WITH_SPARK) HYPOTHESIS_PROFILE=ci $(PYTEST) -m "slow or (hypothesis and not spark)" $(PYTEST_ARGS)

test-power: $(READY) ## break the source in known ways, and see that tests notice
	@$(WITH_SPARK) $(BIN)/python tools/mutate.py

check: $(READY) ## lint, format, types, layers, spelling, documented errors
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/check_errors_documented.py
	$(BIN)/python tools/gaps.py --check

bench: $(READY) ## measure speed and memory; BENCH_ARGS=--quick for two minutes, --help for all options
	@$(BIN)/python -c "import duckdb, polars" 2>/dev/null || \
		$(BIN)/python -m pip install -qq --disable-pip-version-check --no-build-isolation --editable ".[bench]"
	@$(WITH_SPARK) $(BIN)/python -m benchmarks $(BENCH_ARGS)

docs: $(READY) ## run every example of the README, the docs and examples/
	@$(WITH_SPARK) $(BIN)/python -m pytest README.md docs examples $(PYTEST_ARGS)

# uv resolves for all platforms and Python versions at once; it is needed for nothing else.
lock: ## pin the packages of pyproject.toml anew in requirements.lock
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/pip install -qq --disable-pip-version-check uv; }
	@build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" \
		--extra all --extra dev --output-file requirements.lock $(LOCK_ARGS) pyproject.toml

clean: ## remove all that make has made, .venv included
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
