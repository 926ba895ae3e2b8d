"""The page in a real browser: everything that can be clicked is clicked, at the widths of a phone and a desk."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import result_examples as examples
from swapcal.report import page

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="there is no Chromium with its chromedriver here")

PHONE, DESK = (390, 844), (1280, 900)
FLAGS: tuple[str, ...] = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)
FLAGS += ("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage")


class Browser:
    """One page in a browser: what is asked of it, and what it said and fetched."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, size: tuple[int, int] = DESK, scheme: str = "light") -> None:
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
        self.driver.get(path.as_uri())

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def shown(self, selector: str) -> list[Any]:
        return [each for each in self.driver.find_elements("css selector", selector) if each.is_displayed()]

    def ask(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def scroll_to(self, element: Any) -> Any:
        self.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        return element

    def choose(self, name: str, value: str) -> None:
        self.scroll_to(self.one(f"[data-switch='{name}']"))
        self.one(f"input[name='{name}'][value='{value}']").click()

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def fetched(self) -> list[str]:
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page.write(examples.run_example(n_groups=6), tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page.write(examples.hostile_example(), tmp_path_factory.mktemp("page") / "page.html")


def test_it_opens_without_a_word_and_fetches_nothing(browser: Browser, path: Path) -> None:
    browser.open(path)
    assert browser.one("h1").text == examples.run_example(n_groups=6).verdict.headline
    assert set(browser.fetched()) <= {path.as_uri(), "data:,"}
    assert browser.complaints() == []
    assert browser.ask("return performance.getEntriesByType('resource').length") == 0
    first = browser.ask("return document.querySelector('main').firstElementChild.id")
    assert first == "verdict"


def test_dark_and_light_by_the_system_and_by_the_button(browser: Browser, path: Path) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    line = "return getComputedStyle(document.querySelector('#time svg .after path')).stroke"
    seen = {}
    for scheme in ("light", "dark"):
        browser.open(path, scheme=scheme)
        seen[scheme] = (browser.ask(background), browser.ask(line))
        button = browser.one("#theme")
        assert button.get_attribute("aria-pressed") == str(scheme == "dark").lower()
        button.click()
        seen[f"{scheme}, pressed"] = (browser.ask(background), browser.ask(line))
        button.click()
        assert (browser.ask(background), browser.ask(line)) == seen[scheme]
    assert seen["light"][0] != seen["dark"][0]
    assert seen["light"][1] != seen["dark"][1]
    assert seen["light, pressed"] == seen["dark"]
    assert seen["dark, pressed"] == seen["light"]


def test_groups_are_chosen(browser: Browser, path: Path) -> None:
    browser.open(path)
    from selenium.webdriver.support.select import Select

    select = Select(browser.one("#group"))
    assert len(select.options) == 5
    for option in select.options:
        select.select_by_visible_text(option.text)
        shown = browser.shown("#diagrams figure h3")
        assert [each.text for each in shown] == ["All rows", option.text]
    link = browser.one("#groups a[data-group]")
    browser.ask("arguments[0].click()", link)
    assert browser.shown("#diagrams figure h3")[-1].text == link.text
    assert select.first_selected_option.text == link.text


def test_before_and_after_are_chosen(browser: Browser, path: Path) -> None:
    browser.open(path)
    for value, before, after in (("before", True, False), ("after", False, True), ("both", True, True)):
        browser.choose("series", value)
        figure = "#diagrams figure:not([data-away]) svg"
        assert bool(browser.shown(f"{figure} .before path")) is before
        assert bool(browser.shown(f"{figure} .after path")) is after
    assert not browser.shown("#worst-tables"), "folded, until one asks for it"
    browser.scroll_to(browser.one("#worst summary")).click()
    for control, container in (("map", "#maps"), ("worst-side", "#worst-tables")):
        for value in ("after", "before"):
            browser.choose(control, value)
            shown = browser.shown(f"{container} > [data-side]")
            assert [each.get_attribute("data-side") for each in shown] == [value]


def test_cells_tell_their_numbers_by_pointer_and_by_keyboard(browser: Browser, path: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    browser.open(path)
    detail = browser.one("#detail")
    assert "arrow keys" in detail.text
    cell = browser.scroll_to(browser.shown("table.heat td[aria-label]")[3])
    ActionChains(browser.driver).move_to_element(cell).perform()
    assert cell.get_attribute("aria-label") in detail.text
    assert detail.text.startswith("all rows: ")
    cell.click()
    ActionChains(browser.driver).send_keys(Keys.ARROW_DOWN).perform()
    focused = browser.driver.switch_to.active_element
    assert focused.tag_name == "td"
    assert focused != cell
    assert focused.get_attribute("aria-label") in detail.text
    assert not detail.text.startswith("all rows: ")
    assert len(browser.driver.find_elements("css selector", "[data-side=before] td[tabindex='0']")) == 1
    browser.choose("map", "after")
    assert browser.one("[data-side=after] td.at").get_attribute("aria-label") in detail.text
    assert browser.complaints() == []


@pytest.mark.parametrize("size", [PHONE, DESK, (320, 640)])
@pytest.mark.parametrize("which", ["path", "hostile"])
def test_nothing_runs_over_the_side(
    browser: Browser, size: tuple[int, int], which: str, request: pytest.FixtureRequest
) -> None:
    browser.open(request.getfixturevalue(which), size)
    root = "document.documentElement"
    assert browser.ask(f"return {root}.scrollWidth") <= size[0]
    wide = browser.ask(
        """
        const inside = (e) => e.closest(".scroll, svg, .sr, select");
        const over = (e) => e.getBoundingClientRect().width && e.getBoundingClientRect().right > arguments[0] + 1;
        const found = [...document.querySelectorAll("main *, header *")].filter((e) => !inside(e) && over(e));
        return found.map((e) => e.outerHTML.slice(0, 99));
        """,
        size[0],
    )
    assert wide == []


def test_hostile_names_run_nothing(browser: Browser, hostile: Path) -> None:
    browser.open(hostile)
    assert browser.ask("return window.pwned") is None
    assert browser.ask("return document.querySelectorAll('main script, main img').length") == 0
    names = browser.ask("return [...document.querySelectorAll('#groups tbody th')].map((e) => e.textContent)")
    assert {f"carrier={name}" for name in examples.HOSTILE[:5]} <= set(names)
    assert set(browser.fetched()) <= {hostile.as_uri(), "data:,"}
    assert browser.complaints() == []


def test_print_shows_every_side_and_no_buttons(browser: Browser, path: Path) -> None:
    browser.open(path, scheme="dark")
    browser.choose("series", "after")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.shown("button:not(th button), select, .switch") == [], "heads of columns stay"
        assert len(browser.shown("#diagrams figure")) == 6
        assert browser.shown("#diagrams svg .before path")
        assert len(browser.shown("#maps > [data-side]")) == 2
        assert browser.ask("return getComputedStyle(document.documentElement).colorScheme") == "light"
        assert browser.ask("return getComputedStyle(document.querySelector('h1')).color") == "rgb(27, 31, 39)"
        printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        assert len(printed["data"]) > 10_000
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen"})


def test_without_scripts_everything_is_there(browser: Browser, path: Path) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(path)
        assert len(browser.shown("#diagrams figure")) == 6
        assert len(browser.shown("#maps > [data-side]")) == 2
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser: Browser, path: Path, scheme: str) -> None:
    """Contrast of text with what is behind it: at least 4.5 to 1, the level AA of WCAG 2."""
    browser.open(path, scheme=scheme)
    style = (
        "const s = getComputedStyle(document.documentElement); return arguments[0].map((n) => s.getPropertyValue(n))"
    )
    texts, grounds = ("--ink", "--muted", "--before", "--after"), ("--paper", "--bg")
    for text, color in zip(texts, browser.ask(style, list(texts)), strict=True):
        for ground, behind in zip(grounds, browser.ask(style, list(grounds)), strict=True):
            assert _contrast(color, behind) >= 4.5, (text, ground)
    for kind in ("good", "unsure", "bad"):
        color, behind = browser.ask(style, [f"--{kind}", "--paper"])
        assert _contrast(color, behind) >= 4.5, kind


def _contrast(a: str, b: str) -> float:
    def light(color: str) -> float:
        color = color.strip()
        color = color if len(color) == 7 else "#" + "".join(2 * c for c in color[1:])
        parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)
