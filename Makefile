# SPDX-License-Identifier: Apache-2.0
# Everything a contributor runs. Needs Python >= 3.10, g++, cmake and make, and
# installs the rest into .venv. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
NATIVE := $(wildcard CMakeLists.txt native/*.cpp native/*.hpp)
SANITIZED := build/sanitize
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help install demo test check lint format bench perf docs sanitize self-test wheel wheel-test \
  clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "splatcert needs Python 3.10 or newer: make PYTHON=python3.11 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# Torch goes first and alone, at the constraint's exact version: resolved together
# with the rest it could come as another build, and that is a large download to undo.
$(VENV)/.installed: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt -e ".[dev]"
	@touch $@

# The package without the contributors' tools: all that the demo needs.
$(VENV)/.package: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt -e .
	@touch $@

install: $(VENV)/.installed  ## make .venv with the package and its tools

demo: $(if $(wildcard $(VENV)/.installed),$(VENV)/.installed,$(VENV)/.package)  ## train, certify and look: a still life of ours, into ./splatcert-demo
	$(BIN)/splatcert demo

test: lint check  ## everything that must pass: lint, types, tests

check: install  ## the tests alone
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile

lint: install  ## ruff, formatting and types, nothing changed
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(if $(NATIVE),$(BIN)/clang-format --dry-run --Werror $(filter native/%,$(NATIVE)))
	$(BIN)/pyright --pythonpath $(BIN)/python

format: install  ## rewrite the sources in the house format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(if $(NATIVE),$(BIN)/clang-format -i $(filter native/%,$(NATIVE)))

bench: install  ## measure the engine; writes JSON with the machine described
	$(BIN)/python benchmarks/engine.py

PERF := build/perf
perf: install  ## compare instruction counts of the hot kernels with the committed ones; needs valgrind
	cmake -S . -B $(PERF) -DSPLATCERT_INSTRUCTION_COUNTS=ON > /dev/null
	cmake --build $(PERF) > /dev/null
	$(BIN)/python benchmarks/instructions.py $(PERF)/instruction_counts

docs: install  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The base interpreter runs the tests with .venv's packages on its path: the import
# hook of the editable install would otherwise put the plain extension first. Without -s,
# pytest would swallow what a sanitizer says before it ends the process.
sanitize: install  ## tests of the native core under address and undefined sanitizers
	rm -rf $(SANITIZED)/site
	$(PIP) install --no-deps --target $(SANITIZED)/site -C build-dir=$(SANITIZED)/cmake \
	  -C cmake.build-type=RelWithDebInfo -C cmake.define.SPLATCERT_SANITIZE=ON \
	  -C install.strip=false .
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONPATH="$(SANITIZED)/site:$$($(BIN)/python -c \
	  'import sysconfig; print(sysconfig.get_path("purelib"))')" \
	$$($(BIN)/python -c 'import sys; print(sys._base_executable)') \
	  -m pytest -q -s -p no:cacheprovider \
	  tests/raster tests/field tests/training/test_losses.py tests/trust/test_poison.py

self-test:  ## the native core without Python: each compiler that is installed, aarch64 under qemu
	tools/self_test.sh

# Repaired to the oldest manylinux that this machine's compiler and libraries allow.
wheel: install  ## a wheel and a source archive, into dist/
	rm -rf dist build/wheel
	$(BIN)/python -m build --outdir build/wheel
	mkdir -p dist
	mv build/wheel/*.tar.gz dist
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m auditwheel repair --wheel-dir dist build/wheel/*.whl

wheel-test:  ## the wheel of dist/ in an empty environment, with no compiler on the path
	PYTHON="$(PYTHON)" tools/wheel_test.sh dist/*.whl

clean:  ## remove everything generated, .venv included
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
