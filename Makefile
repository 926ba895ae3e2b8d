# The only place where commands are written; CI calls `make test` and `make slow`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install check format quick test test-python thorough bits slow games spark kills bad checked sanitize soak bench demo docs picture trace clean

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

# Two processes. The tests of a file are in the same one, as they share what is costly: a browser, a report, a Spark
# session. Files come in their order, which ends with doctests: so no long one is left for one process at the end.
TOGETHER := -n 2 --dist loadfile --no-loadscope-reorder

# Under a minute, while one works: the parts, the engine against its oracle, a few of every suite's things, a sample of
# the remembered bits, and the style of the files that were changed. No documentation is played, no types are checked.
QUICK := tests/properties tests/hypotheses tests/engine/test_against_naive.py tests/engine/test_native_engine.py \
	$(wildcard tests/suites)
CHANGED = $(shell git diff --name-only --diff-filter=d HEAD -- '*.py'; git ls-files --others --exclude-standard -- '*.py')

quick: install
	$(if $(strip $(CHANGED)),$(BIN)/ruff check $(CHANGED))
	SWAPCAL_EFFORT=quick $(BIN)/python -m pytest -n 2 -q -x $(QUICK)
	$(BIN)/python -W ignore tests/bits/runs.py --sample 40

# What compares both backends (test_native_*, bits) plays both by itself; the second one alone meets the oracle and the
# world.
ALONE := tests/engine/test_against_naive.py tests/engine/test_backends.py

test: check
	$(BIN)/python -m pytest $(TOGETHER)
	SWAPCAL_EFFORT=quick SWAPCAL_BACKEND=python $(BIN)/python -m pytest -n 2 $(ALONE)
	$(BIN)/python -W ignore tests/bits/runs.py --sample 8

# What has a compiled twin.
TWINS := tests/engine tests/hints tests/hypotheses tests/audits

# Tests that repeat something play a part of it in `make test`, and all of it here: see tests/helpers/effort.py.
thorough: install
	SWAPCAL_EFFORT=all $(BIN)/python -m pytest $(TOGETHER)
	SWAPCAL_EFFORT=all SWAPCAL_BACKEND=python $(BIN)/python -m pytest $(TOGETHER) $(TWINS)

test-python: install
	SWAPCAL_BACKEND=python $(BIN)/python -m pytest $(TOGETHER)

bits: install
	$(BIN)/python -W ignore tests/bits/runs.py

# Rates, repeated guarantees and long series of kills: nine minutes on two cores, and the build with sanitizers, test by test, as some files are long.
# Spark is half a gigabyte and needs Java: CI installs it (`.ci/run`); without it, its tests are skipped.
slow: install spark checked
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow
	$(SANITIZED) -m pytest -p no:cacheprovider -q tests/engine/test_native_edges.py tests/audits/test_native_audit.py

# 500 games of 300 rounds against every promise that is printed; the counts go into docs/guarantees.md.
games: install
	PYTHONPATH=tests/helpers $(BIN)/python tests/helpers/games.py promises 500

JAVA := command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null; }

spark: install
	$(BIN)/python -c "import pyspark, google.protobuf" 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark]' || \
		echo "pyspark could not be installed: the tests of Spark are skipped"
	$(JAVA) || echo "no Java could be installed: the tests of Spark are skipped"

# Kills at random moments, of runs in all their forms, of the service under load and of a stream on Spark, at the pace
# at which they commit by default: KILLS in all, shared out. What is counted goes into docs/reliability.md.
COUNTED := $(BIN)/python tools/counts.py
KILLS ?= 1000
KILLED ?= csv jsonl parquet late later interval classes by sqlite postgres spark
kills: install spark
	for subject in $(KILLED); do \
		$(COUNTED) "kills: $$subject" $(BIN)/python tools/kill_many.py $$subject $$(($(KILLS) / $(words $(KILLED)))) || exit 1; \
	done

# What is wrong, BAD times over the service and as often over the API: requests that are wrong in their bytes, paths,
# methods and bodies; those that schemathesis makes up from the OpenAPI document; odd arguments of every kind; states that
# were forged; files that were damaged. Each must be refused by name, and nothing may have changed.
BAD ?= 100000
PLAYED := env SWAPCAL_EFFORT=all $(BIN)/python -m pytest -q
bad: install
	$(COUNTED) "bad requests" $(BIN)/python tools/bad_requests.py $(BAD)
	$(COUNTED) "requests made up from the OpenAPI document" $(PLAYED) -m slow tests/service/test_hostile.py
	$(COUNTED) "100,000 odd arguments" $(PLAYED) tests/engine/test_fuzz.py tests/audits/test_fuzz_audit.py
	$(COUNTED) "1,000 forged states of every kind" $(PLAYED) tests/suites/test_stateful.py -k made_by_hand
	$(COUNTED) "5,000 damaged files" $(PLAYED) tests/tasks/test_files.py -k damaged_files

# The compiled module once more, with the address and undefined behavior sanitizers, in an environment beside the usual
# one that shares its packages; and the tests that reach every kernel: engine, learning hint, audit, marks, readers. Left
# out are the long games about rates, guarantees and identities, which play the same kernels. Needs GCC. See
# docs/reliability.md.
CHECKED := build/sanitize
CHECKED_TESTS ?= $(filter-out $(patsubst %,tests/engine/test_%.py,rates guarantees identities), \
	$(wildcard tests/engine/test_*.py)) tests/hints tests/audits tests/suites/test_stateful.py
PRELOAD = $(shell g++ -print-file-name=libasan.so) $(shell g++ -print-file-name=libubsan.so) \
	$(shell g++ -print-file-name=libstdc++.so)

SANITIZED = LD_PRELOAD="$(PRELOAD)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 SWAPCAL_BACKEND=native \
	$(CHECKED)/bin/python

checked: install
	$(PYTHON) -m venv $(CHECKED)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$($(CHECKED)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/shared.pth
	$(CHECKED)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
		--config-settings=cmake.define.SWAPCAL_SANITIZE=ON --config-settings=build-dir=build/sanitize-cmake .

sanitize: checked
	$(SANITIZED) tools/counts.py "sanitizers" $(CHECKED)/bin/python -m pytest -p no:cacheprovider -x $(CHECKED_TESTS)

# An hour of steady load on the service, and its memory all the while; see docs/service-bench.md.
soak: install
	$(COUNTED) "steady load for an hour" nice -n 5 $(BIN)/swapcal bench service --soak 60 --rate 300 --docs docs

bench: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e './benchmarks[peers]'
	$(BIN)/swapcal bench speed --out build/bench-speed --docs docs

demo: install
	$(BIN)/swapcal demo

# The site, in build/site, without a network. The extra brings the generator and what plays the notebooks.
docs: install
	$(BIN)/python -c "import mkdocs, mkdocstrings, jupytext, nbconvert, ipykernel, mapie, mcgrad" 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python tools/build_site.py

# The picture of the README.
picture: install
	$(BIN)/python tools/picture.py

# What one `swapcal run` meets of the package, and the package in numbers; with --list file by file.
trace: install
	$(BIN)/python tools/trace.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
