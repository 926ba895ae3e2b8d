# The only place where commands are written; CI calls `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install check format test test-python bits slow bench demo clean

install: $(STAMP)

$(STAMP): pyproject.toml benchmarks/pyproject.toml CMakeLists.txt benchmarks/CMakeLists.txt $(wildcard cpp/* cpp/*/* benchmarks/cpp/*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,dev]' -e ./benchmarks
	touch $(STAMP)

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What has a compiled twin runs on both backends; everything else rests on it and runs once.
TWINS := tests/engine tests/hints tests/hypotheses tests/audit

test: check
	$(BIN)/python -m pytest -n 2
	SWAPCAL_BACKEND=python $(BIN)/python -m pytest -n 2 $(TWINS)

test-python: install
	SWAPCAL_BACKEND=python $(BIN)/python -m pytest -n 2

bits: install
	$(BIN)/python -W ignore tests/bits/runs.py

slow: install
	$(BIN)/python -m pytest -n 2 -m slow

bench: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e './benchmarks[peers]'
	$(BIN)/swapcal bench speed --out build/bench-speed --docs docs

demo: install
	$(BIN)/swapcal demo

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
