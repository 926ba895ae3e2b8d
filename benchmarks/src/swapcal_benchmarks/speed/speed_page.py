"""The page docs/performance.md: the tables of a run, and what a reader needs beside them."""

from typing import Any

from swapcal_benchmarks.classes import cost_table
from swapcal_benchmarks.report import Table, document
from swapcal_benchmarks.speed.sizes_of_state import FILE_EXTRA, FORMULAS
from swapcal_benchmarks.speed.speed_tables import markdown, verdict_sentence
from swapcal_benchmarks.speed.target_row import TargetRow

__all__ = ["page"]


def page(rows: list[TargetRow], about: dict[str, Any]) -> str:
    """The whole page, in Markdown."""
    formulas = Table("", ("part", "bytes", "where"), tuple(FORMULAS), align="lll")
    return document(
        "How fast, and how large",
        "Made by `make bench`, which is `swapcal bench speed --docs docs`; every number in the tables comes from that "
        f"run (swapcal {about['swapcal']}, Python {about['python']}, NumPy {about['numpy']}, {about['cores']} cores, "
        f"{about['machine']}). {verdict_sentence(rows)}",
        _RULES,
        "## A recorded stream",
        _BARE,
        markdown(rows, "run"),
        "## One event at a time",
        _EVENTS,
        markdown(rows, "events"),
        "## Longer streams",
        _GROWTH,
        markdown(rows, "growth"),
        markdown(rows, "memory"),
        "## A long file",
        _FILES,
        markdown(rows, "files"),
        "## Bytes of state",
        "With room for C values (32 at first, doubled when needed, so at most twice as many as there are) and a "
        "context of length n, the arrays of a forecaster take",
        formulas.markdown(),
        "and nothing else grows with the rounds: values are added where rounding has been shown to cost, at most of "
        f"order T^(1/3), usually far fewer. A state file is at most {FILE_EXTRA:,} bytes larger than that (plus the "
        "names of groups, if there are any) and usually far smaller: weights are not stored, and the rest is "
        "compressed. `tests/benchmarks/test_state_size.py` confirms both.",
        markdown(rows, "state"),
        "## Starting",
        _STARTUP,
        markdown(rows, "startup"),
        "## Beside other packages",
        _PEERS,
        markdown(rows, "peers"),
        "## Threads",
        _THREADS,
        markdown(rows, "threads"),
        "## Instructions",
        _INSTRUCTIONS,
        markdown(rows, "instructions"),
        "## Why the state is float64",
        _FLOAT32,
        markdown(rows, "float32"),
        "## Classes of functions",
        cost_table().markdown(),
        "Printed by `swapcal bench classes`, too.",
        _NATIVE,
    )


_FILES = """\
What `swapcal audit` and `swapcal run` do with a generated CSV file: read it, find groups, score the model, forecast,
write, and draw up the result. Not a ratio: processor time on one core of this machine."""

_RULES = """\
Mostly ratios are shown, because they carry over from machine to machine better than times do. Both sides of a ratio
take turns in one process, who goes first alternates, and the median of the ratios stands beside its quartiles. Times
are processor times of the working thread, so that other programs on the machine count little; only starts and threads
go by the wall clock. A target that is missed is shown as MISSED, and the command ends with exit code 1."""

_BARE = """\
The bare loop is C++ that does what a search without a start cannot avoid, and nothing else: the products of the
context with the two outer rows of the evidence, a bisection on the signs of such products down to two neighbors, and
one row update; log2 N + 2 products and an update in all, N the number of values. It adds from left to right, like the
engine, and is compiled with the same flags. It starts from the rows that the engine has after the same stream. It
weighs nothing, draws nothing, keeps no books and checks nothing. The engine itself walks from where it expects the
forecast, which is usually shorter; it also weighs its rows, keeps the ledger of what each value is owed, and adds
values.

A bisection must wait for one sign before it knows the next row, and the bare loop waits too. Two stricter yardsticks
do not: in the first, the rows of every round are named in advance, and the processor works on several products at
once; in the second, products are also added up in four partial sums, which would give other bits than Python's. No
search can be that fast; they show what waiting costs. The sparse rows are timed as a user calls `run`, reading and
checking of the input included; without that, what is left is mostly waiting for memory: the rows of 10,000 functions
do not fit into the caches that those of 100 fit into."""

_EVENTS = """\
`predict` and `update` as they are called from Python, with everything between the caller and the kernel: the Python
methods, the `Forecast` object with its fields, checks of every argument. Beside them, in the same loop, are two calls
into the compiled module with the same arguments that do nothing. The twin is the pure Python engine on the same
stream."""

_GROWTH = """\
Values are few and the search starts near the one to play, so a round of a long stream takes little longer than one of
a short stream. Forecasters are made before the clock starts. Memory is the peak of the whole
process, interpreter and libraries included, less the bytes of the arrays that `run` is given; the forecasts that it
returns are part of what is counted."""

_STARTUP = """\
Imports are timed inside a fresh interpreter, without its own start; commands from start to end. `import swapcal`
loads names when they are first used, so the second row is the honest price of a forecaster: NumPy, the engine and its
kernels."""

_PEERS = """\
One event of another package that learns online, a prediction and an update, over one event of ours, on the same
stream of 20 overlapping groups: `predict + update` is the like-for-like comparison, from Python event by event; `run`
is what a recorded stream takes. They do other things than we do; what is compared is what a service waits for. river
takes dictionaries: once with all 20 entries of the array that we are given, once with only the groups that a case is
in, which costs it less. online-cp keeps every event, so its cost grows with the stream: it is timed on the first few
hundred, which is a favor to it."""

_THREADS = """\
`run` lets go of Python's lock while it works, so independent forecasters use all cores from plain threads. One
forecaster belongs to one thread at a time. Whatever else the machine does at that time shows here, so a control
stands beside it: hashing, of which it is known that it lets go of the lock."""

_INSTRUCTIONS = """\
`benchmarks/cpp/driver.cpp` plays one fixed stream through the kernels without Python, and valgrind's callgrind
counts what two more passes over it add. The counts are kept in [instructions.json](instructions.json) with the
compiler that made them, so that a later change shows its cost on any machine: `swapcal bench speed --only
instructions` prints the difference. It is judged (2 % more is a miss) only where the compiler and the vector
instructions are the same. Below stands what a round costs over one of the engine whose grid was equal bins."""

_FLOAT32 = """\
The driver also plays the engine with sums, spreads and weights in single precision; numbers above 1 mean that this is
faster. It is not where rows are dense, as conversions cost more than the memory saves; it is where few of many
functions are active and memory is what a round waits for. Against that stand a second truth to keep bit-equal, and
counts that stop counting: a spread that has reached 2^24 no longer changes when 1 is added. So there is no such
option."""

_NATIVE = """\
## What is native

Compiled are the loops that a profile named: `predict`, `update` and `run` for `Finite` with each potential (dense and
sparse), `Linear`, boxes, unions and products, for all properties; the learning hint `OnlineRegression`; the sums of
`Audit`. Kernels hold no state of their own: they work in the NumPy arrays of the Python objects, so a forecaster can
be saved, looked at and continued from either side.

Parts of your own stay Python and work as before. Around a property or a learning hint of your own, the search and the
books stay native; with a class or potential of your own, over an `Oracle`, and with a model as hint, rounds are played
in Python.

## How the two stay one

The Python code is the specification and is always there. Kernels repeat its operations in its order: sums run from
left to right, products are not fused with additions (`-ffp-contract=off`), and the exponential is our own polynomial,
written down twice, instead of two libraries' idea of `exp`. Where a function of the C library is used, Python's
`math` calls the same one. Vector code is allowed where every lane does what the scalar does. The test suite runs on
both backends, and streams made by hypothesis compare them bit for bit, with a save and a load in the middle.

## Without a compiler

`pip install .` compiles the kernels if there is a C++17 compiler. If that fails, or if `SWAPCAL_PURE=1` is set, the
install succeeds without them, and the package works in Python with the same numbers. It says so once, as an
`UncompiledWarning`, when the first forecaster is made.

## Switching

`swapcal.backend()` says `native` or `python`. The environment variable `SWAPCAL_BACKEND=python` leaves the kernels
alone and is not warned about; `SWAPCAL_BACKEND=native` insists on them and fails if they are missing.
`swapcal.engine.kernels.using("python")` chooses for a block; a forecaster keeps the backend it was made with."""
