"""Figures return the axes they are given, frames hold the numbers, and the page holds all of it and nothing foreign."""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import narwhals as nw
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import result_examples as examples
from effort import ALL
from swapcal import recalibrate
from swapcal.audits.histograms import Curve
from swapcal.errors import InvalidInput, MissingExtra
from swapcal.properties import Expectile, Mean, Moment, Probability, Property, Quantile
from swapcal.report import (
    bias_by_group,
    bias_over_time,
    error_over_time,
    forecast_histogram,
    loss_change,
    page,
    reliability,
    reliability_of_groups,
)
from swapcal.report.figures import FEW
from swapcal.tables.sources import FRAMES
from swapcal.tasks.result import History, Result

FIGURES: dict[str, Callable[[Result], Any]] = {
    "groups": bias_by_group,
    "reliability": reliability,
    "reliability of groups": reliability_of_groups,
    "bias over time": bias_over_time,
    "time": error_over_time,
    "loss": loss_change,
    "histogram": forecast_histogram,
}
RUN, AUDIT = examples.run_example(n_groups=4), examples.audit_example(n_groups=4)
SHAPES: dict[str, Callable[[], Result]] = {
    "run": lambda: RUN,
    "quantile": lambda: examples.run_example(Quantile(0.9, high=180.0), 2, 2_000),
    **({"expectile": lambda: examples.run_example(Expectile(0.8, low=-5.0, high=50.0), 2, 2_000)} if ALL else {}),
    "audit": lambda: AUDIT,
    "after": examples.after_only_example,
    "constant": examples.constant_example,
    "hostile": examples.hostile_example,
    "one group": lambda: examples.run_example(n_groups=1, n=101),
}


class Document(HTMLParser):
    """Tags with their attributes, and text, as a browser would read them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@cache
def _page(shape: str) -> str:
    return page.html(SHAPES[shape]())


@pytest.fixture(params=list(SHAPES))
def rendered(request: pytest.FixtureRequest) -> str:
    return _page(request.param)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_draws_where_it_is_told_and_says_what_it_shows(name: str) -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    ax, own = figure.add_subplot(), FIGURES[name](RUN)()
    assert FIGURES[name](RUN)(ax) is ax
    _draw(ax)
    _draw(own)
    assert ax.get_xlabel()
    assert own.get_figure().canvas.manager is None, "no global state knows of it"
    finding = FIGURES[name](RUN).finding
    assert (finding[-1], "nan" in finding) == (".", False)


def test_results_plot_the_worst_groups_before_and_after_and_notebooks_show_it() -> None:
    diagrams = RUN.plot("reliability")
    names = [RUN.first.leading.groups.name[j] for j in RUN.first.leading.groups.ranked()]
    assert [part.get_title(loc="left") for part in diagrams.child_axes] == ["all rows", *names][:6]
    assert {text.get_text().split(":")[0] for text in diagrams.get_legend().get_texts()} == {"before", "after"}
    assert len(RUN.plot("reliability", group=names[0]).child_axes) == 0
    over_time = RUN.plot("time")
    labels = [text.get_text() for text in over_time.get_legend().get_texts()]
    assert [label.partition(": ")[::2] for label in labels] == [
        (side, group) for side in ("before", "after") for group in ("all rows", labels[1].partition(": ")[2])
    ]
    assert over_time._repr_png_().startswith(b"\x89PNG")
    # Nothing of a legend is cut off.
    for kind in ("groups", "reliability", "time"):
        ax = RUN.plot(kind)
        _draw(ax)
        figure, box = ax.get_figure(), ax.get_legend().get_window_extent()
        assert box.x0 >= 0.0
        assert box.x1 <= figure.bbox.x1


def test_intervals_show_coverage() -> None:
    rng = np.random.default_rng(0)
    rows = {"y": rng.normal(0.0, 1.0, 3_000), "p": np.zeros(3_000), "g": rng.choice(["a", "b"], 3_000)}
    result = recalibrate(rows, "y", "p", "g", interval=0.8, seed=1)
    drawn = result.plot("time")
    assert drawn.get_title(loc="left") == "coverage, %"
    shares = np.concatenate([line.get_ydata() for line in drawn.lines[1:]])
    assert 60.0 < shares.min() < 80.0 < shares.max() <= 100.0
    with pytest.raises(InvalidInput, match="draw their coverage"):
        result.plot("reliability")


@pytest.mark.parametrize("backend", [*FRAMES, None])
def test_frames_hold_the_numbers(backend: str | None) -> None:
    group = RUN.first.groups[3]
    points = _columns(reliability(RUN, group).frame(backend))
    for field in ("forecast", "outcome", "low", "high", "count"):
        wanted = [*getattr(RUN.before.curves[group], field), *getattr(RUN.after.curves[group], field)]
        np.testing.assert_array_equal(points[field], wanted)
    times = _columns(error_over_time(RUN).frame(backend))
    np.testing.assert_array_equal(times["after"], RUN.first.history.after)
    np.testing.assert_allclose(np.power(times["rate"], 3), RUN.first.history.rounds)
    loss = _columns(loss_change(RUN).frame(backend))
    assert (loss["low"][0], loss["high"][0]) == (RUN.change.low, RUN.change.high)
    bins = _columns(forecast_histogram(RUN).frame(backend))
    assert bins["count"] == [*RUN.before.histogram, *RUN.after.histogram]


def test_groups_sum_up_their_cells() -> None:
    rng = np.random.default_rng(0)
    result = examples.run_example(Quantile(0.9), n=3_000)
    side, found = result.before, result.before.groups
    for j in rng.integers(0, len(result.first.groups), 5):
        held = [(side.bias[i, j], side.counts[i, j]) for i in range(len(side.histogram)) if side.counts[i, j] > 0]
        mean = sum(b * n for b, n in held) / sum(n for _, n in held)
        assert found.mean[j] == pytest.approx(mean)
        assert found.low[j] < mean < found.high[j]
        # Never narrower than what independent draws with the quantile's own spread would allow.
        assert found.high[j] - found.low[j] > 2 * 1.96 * np.sqrt((mean + 0.9) * (0.1 - mean) / found.rows[j])
    assert found.error.max() == pytest.approx(side.group_error)
    ranked = [(found.biased[j], abs(found.near[j])) for j in found.ranked()[:12]]
    assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize(
    ("property", "bias", "words"),
    [
        (Probability(), 0.0312, "too high by 3.1 points"),
        (Mean(low=0.0, high=200.0), -0.05, "too low by 10"),
        (Quantile(0.9, low=-1.0, high=3.0), -0.03, "coverage too low by 3.0 points"),
        (Expectile(0.8, high=10.0), 0.021, "too high by 0.21"),
        (Moment(2, low=0.0, high=3.0), 0.1, "too high by 0.9"),
        (Property(lambda p, y: p - y, name="mine"), 0.25, "too high by 0.25 in mean identification"),
        (Mean(), float("nan"), "nothing was forecast"),
        (Mean(), 0.00001, "no bias"),
    ],
)
def test_biases_are_told_in_the_units_of_the_property(property: Any, bias: float, words: str) -> None:
    assert property.wording.bias(bias) == words


def test_nothing_on_the_page_comes_from_elsewhere_and_only_its_own_script_may_run(rendered: str) -> None:
    document = Document(rendered)
    for tag, attributes in document.tags:
        assert tag not in {"iframe", "object", "embed", "base", "audio", "video", "form"}
        assert not {"src", "srcset", "action", "onerror", "onclick", "onload"} & set(attributes)
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert "url(" not in re.sub(r"url\(#", "", attributes.get("style") or "")
    for style in re.findall(r"<style>(.*?)</style>", rendered, flags=re.DOTALL):
        assert not re.search(r"@import|url\(", style)
    assert "://" not in rendered
    [script] = re.findall(r"<script>(.*?)</script>", rendered, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = str(next(a["content"] for _, a in document.tags if a.get("http-equiv") == "Content-Security-Policy"))
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_names_stay_text() -> None:
    document = Document(_page("hostile"))
    tags = Counter(tag for tag, _ in document.tags)
    assert (tags["script"], tags["img"], tags["u"], tags["b"]) == (1, 0, 0, 0)
    text = "".join(document.text)
    assert all(name in text for name in examples.HOSTILE[:5])
    assert "{{ 7 * 7 }} {% raw %} &amp; 'quotes'" in text


def test_references_have_their_targets_figures_have_words_and_headings_are_in_order(rendered: str) -> None:
    document = Document(rendered)
    names = Counter(a["id"] for _, a in document.tags if a.get("id"))
    assert not [name for name, n in names.items() if n > 1], "drawings do not share names"
    wanted = set(re.findall(r"url\(#([^)]+)\)", rendered)) | set(re.findall(r'href="#([^"]+)"', rendered))
    wanted |= {str(a["aria-labelledby"]) for _, a in document.tags if a.get("aria-labelledby")}
    assert wanted <= set(names)
    drawings = [a for _, a in document.tags if a.get("class") == "drawing"]
    assert drawings
    assert all(a.get("role") == "img" and len(a.get("aria-label") or "") > 20 for a in drawings)
    levels = [int(tag[1]) for tag, _ in document.tags if re.fullmatch(r"h\d", tag)]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert not re.search(r"\bnan\b", re.sub(r"<script.*?</script>", "", rendered, flags=re.DOTALL))


def test_what_is_missing_is_left_out() -> None:
    ids = {kind: _ids(_page(kind)) for kind in ("run", "audit", "after")}
    assert {"totals", "loss", "histogram", "cells", "groups", "worst"} <= ids["run"]
    assert "loss" not in ids["audit"] | ids["after"]
    assert 'id="time"' not in page.html(examples.with_section(AUDIT, history=None))
    assert all('id="time"' in _page(kind) for kind in ("run", "after"))
    with pytest.raises(InvalidInput, match="neither"):
        page.html(examples.with_section(RUN, before=None, after=None))


@pytest.mark.slow
def test_the_page_stays_small() -> None:
    text = page.html(examples.run_example(n_groups=1_000, n=3_000))
    assert len(text.encode()) < 1_500_000
    shown = re.search(r"Diagrams are shown for (\d+) of \d\d\d groups", text)
    assert shown is not None, re.findall(r"Diagrams[^<]{0,80}", text)
    assert 1 < int(shown.group(1)) <= 30
    assert re.search(r"40 of \d\d\d groups are shown", text)


def test_cells_without_numbers_are_blank_and_few_rows_are_marked() -> None:
    side: Any = AUDIT.before
    cells = _cells(_page("audit"))
    used = side.histogram > 0
    counts = side.counts[used.argmax() : len(used) - used[::-1].argmax()]
    assert sum(c == "none" for c in cells) == int((counts == 0).sum())
    assert sum(c.endswith(" few") for c in cells) == int(((counts > 0) & (counts < FEW)).sum())
    empty = replace(side, bias=np.full_like(side.bias, np.nan), counts=np.zeros_like(side.counts))
    blank = examples.with_section(AUDIT, before=empty)
    assert set(_cells(page.html(blank))) == {"none"}
    assert "no cell with" in page.html(blank)


def test_odd_numbers_are_drawn() -> None:
    nothing, half = np.zeros(0), np.array([np.nan, 0.5])
    curve = Curve(half, half, half, half, np.array([0.0, 3.0]))
    side: Any = RUN.before
    bare = replace(
        side,
        curves={"all": Curve(nothing, nothing, nothing, nothing, nothing), RUN.first.groups[1]: curve},
        histogram=np.zeros_like(side.histogram),
        worst=(),
        witness="",
    )
    history = History(np.array([1.0, 2.0]), None, np.zeros(2), None)
    result = replace(examples.with_section(RUN, before=bare, after=None, history=history), paired={})
    text = page.html(result)
    assert "nothing was forecast for this group" in text
    assert "no error was recorded" in text
    assert "No cell was recorded" in text


def test_threads_draw_the_same_and_settings_stay() -> None:
    result = examples.run_example(n_groups=1, n=2_000)
    alone = page.html(result)
    kept = mpl.rcParams["svg.fonttype"]
    with mpl.rc_context({"text.usetex": True}), ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda _: page.html(result), range(2)))
    assert together == [alone] * 2
    assert mpl.rcParams["svg.fonttype"] == kept


def test_write_gives_the_path_or_a_sentence(tmp_path: Path) -> None:
    result = examples.constant_example()
    written = page.write(result, tmp_path / "page.html")
    assert written.read_text(encoding="utf-8") == _page("constant")
    with pytest.raises(InvalidInput, match=r"cannot be written to .*nowhere.*give another path"):
        page.write(result, tmp_path / "nowhere" / "page.html")


def test_what_cannot_be_drawn_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="no curve for the group 'nobody'"):
        reliability(RUN, "nobody")
    for make in (error_over_time, loss_change):
        with pytest.raises(InvalidInput, match=r"^this result has"):
            make(examples.with_section(AUDIT, history=None))
    with pytest.raises(InvalidInput, match="backend must be one of pandas, polars, pyarrow"):
        forecast_histogram(RUN).frame("spark")
    calls: list[tuple[str, str, Callable[[], Any]]] = [
        ("tables.sources", "pandas", lambda: forecast_histogram(RUN).frame("pandas")),
        ("report.drawing", "matplotlib", lambda: forecast_histogram(RUN)()),
        ("report.page", "jinja2", lambda: page.html(RUN)),
    ]
    for module, missing, call in calls:
        with monkeypatch.context() as patch:
            patch.setattr(f"swapcal.{module}.find_spec", lambda name, gone=missing: name != gone or None)
            with pytest.raises(MissingExtra, match=f"{missing}.* install"):
                call()


def _draw(ax: Any) -> None:
    ax.get_figure().canvas.draw()


def _cells(text: str) -> list[str]:
    return [a.get("class") or "" for tag, a in Document(text).tags if tag == "td" and a.get("role") == "gridcell"]


def _columns(native: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = nw.from_native(native, eager_only=True).to_dict(as_series=False)
    return columns


def _ids(text: str) -> set[str | None]:
    return {a.get("id") for tag, a in Document(text).tags if tag == "section"}
