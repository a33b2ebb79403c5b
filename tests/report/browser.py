#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the page of an incident in Chromium, as a person uses it: with the mouse, with the keyboard, without scripts.

usage: browser.py [--axe axe.min.js] page.html [test ...]

Prints TAP. A test that needs something that the incident does not have is skipped. Nothing sleeps for a fixed time:
each step waits for the state that it leads to.
"""

import argparse
import base64
import contextlib
import json
import pathlib
import re
import shutil
import sys
import tempfile

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

WAIT_S = 20
SECTIONS = ["timeline", "latency", "threads", "stacks", "waits", "loads", "victims", "statements", "evidence",
            "coverage"]
TEXT_SECTIONS = SECTIONS[4:]
LARGEST_BYTES = 1_000_000

# Notes what must not happen, from before the first line of the page.
WATCH = """
window.unwanted = [];
document.addEventListener('securitypolicyviolation',
    (e) => unwanted.push('policy: ' + e.violatedDirective + ' ' + e.blockedURI));
window.addEventListener('error', (e) => unwanted.push('error: ' + e.message));
window.addEventListener('unhandledrejection', (e) => unwanted.push('rejected: ' + e.reason));
for (const name of ['alert', 'confirm', 'prompt', 'open', 'fetch'])
    window[name] = (...args) => { unwanted.push(name + '(' + args + ')'); };
"""


class Skip(Exception):
    """The incident does not have what the test needs."""


def need(value, reason):
    if not value:
        raise Skip(reason)
    return value


def expect(value, what):
    if not value:
        raise AssertionError(what)


class Browser:
    """One Chromium for all tests; each test opens the page anew."""

    def __init__(self, path):
        options = Options()
        options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                         "--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(60)
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.path = path

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition, what):
        """Waits until a condition is true: a function, or JavaScript that returns something."""
        check = condition if callable(condition) else lambda: self.js(condition)
        try:
            return WebDriverWait(self.driver, WAIT_S, poll_frequency=0.05).until(lambda _: check())
        except TimeoutException:
            raise AssertionError("never came: " + what) from None

    def is_pair(self):
        """Two incidents side by side: a page without scripts."""
        return 'class="pair"' in self.path.read_text()

    def open(self, width=1400, height=900, scheme="light", media="", scripts=True, path=None):
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setEmulatedMedia", media=media,
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.cdp("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.driver.get(pathlib.Path(path or self.path).resolve().as_uri())
        if scripts and not self.is_pair():
            self.wait("return document.documentElement.classList.contains('ready')", "the page is ready")
            self.settle()

    def settle(self):
        """Waits until what was asked for is drawn: two frames, as the browser says."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        found = self.all(selector)
        expect(found, "there is no " + selector)
        return found[0]

    def focus(self, selector):
        self.js("arguments[0].focus()", self.one(selector))

    def keys(self, *keys, shift=False):
        actions = ActionChains(self.driver)
        if shift:
            actions.key_down(Keys.SHIFT)
        for key in keys:
            actions.send_keys(key)
        if shift:
            actions.key_up(Keys.SHIFT)
        actions.perform()

    def drag(self, element, from_part, to_part):
        """Drags over an element, between two parts of its width."""
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        width = element.size["width"]
        at = lambda part: round((part - 0.5) * width)
        actions = ActionChains(self.driver, duration=50).move_to_element_with_offset(element, at(from_part), 0)
        actions.click_and_hold().move_by_offset(at((from_part + to_part) / 2) - at(from_part), 0)
        actions.move_to_element_with_offset(element, at(to_part), 0).release().perform()

    def click(self, element):
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def data(self):
        return json.loads(self.js("return document.getElementById('incident-data').textContent"))

    def status(self):
        return self.js("return document.getElementById('span-status').textContent")

    def span(self):
        return self.js("return page.span.get()")

    def unwanted(self):
        console = [e["message"] for e in self.driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
        return self.js("return window.unwanted") + console

    def requests(self):
        """Everything that the page asked for beyond itself."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [url for url in found if not url.split("#")[0].startswith("file:///") or not url.endswith(".html")]


TESTS = []
PAIR_TESTS = []


def test(function):
    TESTS.append(function)
    return function


def test_of_pair_too(function):
    PAIR_TESTS.append(function)
    return test(function)


def name_of(function):
    return function.__name__.replace("_", "-")


# What must never happen

@test_of_pair_too
def page_is_small(b):
    expect(b.path.stat().st_size < LARGEST_BYTES, "%d bytes" % b.path.stat().st_size)


@test
def nothing_unwanted_happens(b):
    b.open()
    use_everything(b)
    expect(not b.unwanted(), b.unwanted())


def use_everything(b):
    """Opens, selects and focuses a bit of everything."""
    if b.is_pair():
        return
    b.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    b.js("document.querySelectorAll('main button, main input[type=radio], main input[type=checkbox]')"
         ".forEach((e) => { if (!e.disabled) e.click(); })")
    b.js("const {from, to} = page.data.bounds; page.span.set(from + (to - from) * 0.3, from + (to - from) * 0.8)")
    b.js("document.querySelectorAll('.bar, .box').forEach((e, i) => { if (i < 30) e.focus(); })")
    b.js("document.querySelectorAll('.box').forEach((e, i) => { if (i < 3) "
         "e.dispatchEvent(new MouseEvent('click', {bubbles: true})); })")
    b.settle()


@test_of_pair_too
def nothing_is_loaded(b):
    b.open()
    use_everything(b)
    entries = b.js("return performance.getEntriesByType('resource').map((e) => e.name)")
    expect(not entries, entries)
    requests = b.requests()
    expect(not requests, requests)


@test
def policy_forbids_everything_else(b):
    b.open()
    policy = b.js("return document.querySelector('meta[http-equiv=Content-Security-Policy]').content")
    expect(re.search(r"default-src 'none'", policy), policy)
    expect("unsafe" not in policy and "http" not in policy and "data:" not in policy, policy)
    b.js("const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);")
    b.js("const i = document.createElement('img'); i.src = 'https://example.invalid/x.png'; document.body.append(i);")
    b.wait("return window.unwanted.filter((text) => text.startsWith('policy')).length >= 2", "two refusals")
    expect(not b.js("return window.ran"), "an injected script ran")


@test_of_pair_too
def what_both_have_comes_first(b):
    need(b.is_pair(), "one incident only")
    b.open()
    tables = b.js("return [...document.querySelectorAll('main table')]"
                  ".map((t) => [...t.tBodies[0].rows].map((r) => r.cells[3].textContent))")
    expect(tables and any("both" in sides for sides in tables), tables)
    expect(all(sides == sorted(sides, key=lambda side: side != "both") for sides in tables), tables)
    text = b.js("return document.body.textContent")
    expect("<svg onload=alert(2)>" in text and not b.all("svg, img") and not b.unwanted(), "a text is markup")


@test
def hostile_texts_stay_texts(b):
    b.open()
    use_everything(b)
    hostile = need([s for s in b.data()["strings"] if re.search(r"<[a-z/!]", s)], "no text has a tag in it")
    found = b.js("""
        return [...document.querySelectorAll('*')].filter((e) =>
            e.matches('img, iframe, object, embed, link, base, form:not(#span-form), a:not([href^="#"])') ||
            e.matches('script') && e.id !== 'incident-data' && e !== document.scripts[1] ||
            [...e.attributes].some((a) => /^on|^srcdoc$|^srcset$/.test(a.name)) ||
            e.localName === 'b' && e.closest('.legend') === null ||
            e.localName === 'i' && !e.className).map((e) => e.outerHTML.slice(0, 200))""")
    expect(not found, found)
    expect(b.js("return document.scripts.length") == 2, "there are other scripts")
    text = b.js("return document.body.textContent")
    expect(any(s in text for s in hostile), "the hostile texts are nowhere to be read")


@test
def invisible_characters_are_shown(b):
    b.open()
    need(any(re.search("[\u202a-\u202e\u2066-\u2069]", s) for s in b.data()["strings"]), "no text has such characters")
    use_everything(b)
    rendered = b.js("""
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) =>
            node.parentElement.closest('script, style') ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
        const found = [];
        while (walker.nextNode())
            if (/[\\u0000-\\u0008\\u200b-\\u200f\\u202a-\\u202e\\u2066-\\u2069]/.test(walker.currentNode.data))
                found.push(walker.currentNode.data);
        for (const e of document.querySelectorAll('[aria-label]'))
            if (/[\\u202a-\\u202e\\u2066-\\u2069]/.test(e.getAttribute('aria-label')))
                found.push(e.getAttribute('aria-label'));
        return found""")
    expect(not rendered, rendered)


@test
def data_with_nothing_in_them(b):
    """A record may have been cut off at any line."""
    with variant(b, lambda data: {key: data[key] for key in ("format", "incident")}) as path:
        b.open(path=path)
        expect(not b.unwanted(), b.unwanted())
        shown = [s for s in SECTIONS if b.one("#" + s).is_displayed()]
        expect(shown == TEXT_SECTIONS, shown)


@test
def data_of_another_format(b):
    with variant(b, lambda data: {**data, "format": 2}) as path:
        b.open(scripts=False, path=path)
        b.cdp("Emulation.setScriptExecutionDisabled", value=False)
        b.driver.refresh()
        b.wait("return document.readyState === 'complete'", "the page is there")
        expect(all(b.one("#" + s).is_displayed() for s in TEXT_SECTIONS), "the text is gone")


def forget(data):
    """Everything that may be unknown is unknown."""
    def nulls(lines, *keys):
        for line in lines:
            line.update(dict.fromkeys(keys))

    at = {name: i for i, name in enumerate(data["operations"]["columns"])}
    for row in data["operations"]["rows"]:
        row[at["pid"]] = row[at["tid"]] = None
        row[at["disk"]] = row[at["stack"]] = row[at["statement"]] = -1
    nulls(data["waits"], "pid", "statement")
    nulls(data["offcpu"], "pid", "state", "threads", "longest_ms")
    nulls(data["loads"], "pid", "tid", "bytes")
    nulls(data["statements"], "tid", "blocked_by", "connection", "ms")
    samples = data["samples"]
    for columns in (samples["psi"], samples["cpu"], *samples["disks"], *samples["databases"]):
        columns.update({key: [None] * len(value) for key, value in columns.items() if isinstance(value, list)})
    samples["blocked"] = [None] * len(samples["t"])
    return data


@test
def data_of_which_nothing_is_known(b):
    with variant(b, forget) as path:
        b.open(path=path)
        use_everything(b)
        expect(not b.unwanted(), b.unwanted())
        text = b.js("return document.querySelector('main').innerText")
        wrong = re.findall(r".*\b(?:NaN|undefined|null|Infinity)\b.*", text)
        expect(not wrong, wrong)


def multiply(data):
    """Many disks, and many threads with as many names."""
    at = {name: i for i, name in enumerate(data["operations"]["columns"])}
    rows = data["operations"]["rows"]
    for copy in range(1, 25):
        data["strings"].append("worker/%d" % copy)
        for row in rows[:200]:
            new = list(row)
            new[at["tid"]] = (row[at["tid"]] or 0) + 1000 * copy
            new[at["comm"]] = len(data["strings"]) - 1
            rows.append(new)
    for copy in range(12):
        data["strings"].append("dm-%d" % copy)
        data["disks"].append({"name": len(data["strings"]) - 1, "dev": "253:%d" % copy, "judged": False})
        disk = len(data["disks"]) - 1
        data["samples"]["disks"].append({**data["samples"]["disks"][0], "disk": disk})
        data["histograms"] += [{**h, "disk": disk} for h in data["histograms"] if h["disk"] == 0]
    return data


@test
def data_with_much_in_them(b):
    b.open()
    need(b.data()["samples"]["disks"] and b.data()["operations"]["rows"], "little to multiply")
    with variant(b, multiply) as path:
        b.open(path=path)
        expect(not b.unwanted(), b.unwanted())
        expect(b.all(".lanes .bar.group"), "so many threads are not grouped")
        disks = "return [...document.querySelectorAll('#timeline h3')].filter((h) => h.offsetParent).length"
        before = b.js(disks)
        expect(before <= 5, before)
        b.click(b.one("#timeline .others summary"))
        b.wait(lambda: b.js(disks) > before, "the other disks")
        b.click(b.all("#threads input[type=radio]")[1])
        b.wait("return document.querySelector('#threads .body').innerText.includes('Not shown')", "what is left out")
        use_everything(b)
        no_sideways(b)
        expect(not b.unwanted(), b.unwanted())


@contextlib.contextmanager
def variant(b, change):
    """The page with other data; the policy has no hash of them."""
    text = b.path.read_text()
    begin = text.index(">", text.index('id="incident-data"')) + 1
    end = text.index("</script>", begin)
    data = json.dumps(change(json.loads(text[begin:end]))).replace("<", "\\u003c")
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(text[:begin] + data + text[end:])
        file.flush()
        yield file.name


# Reading it

@test
def without_scripts_it_is_a_text(b):
    b.open(scripts=False)
    expect(b.one("h1").text, "no sentence")
    for section in TEXT_SECTIONS:
        node = b.one("#" + section)
        expect(node.is_displayed() and len(node.text) > len(b.one("#%s h2" % section).text), section)
    for section in SECTIONS[:4] + ["span"]:
        expect(not b.one("#" + section).is_displayed(), section + " is shown and empty")
    expect(b.one("noscript p").is_displayed(), "nobody says that there would be more")


@test
def all_sections_are_shown(b):
    b.open()
    data = b.data()
    waited = data["operations"]["rows"] or data["waits"]
    have = {"timeline": data["samples"]["t"], "latency": data["histograms"], "threads": waited,
            "stacks": data["offcpu"] or waited}
    for section in SECTIONS:
        shown = b.one("#" + section).is_displayed()
        expect(shown == bool(have.get(section, True)), section)
        expect(shown == b.one('.sections a[href="#%s"]' % section).is_displayed(), "the link to " + section)


@test_of_pair_too
def headings_are_in_order(b):
    b.open()
    levels = b.js("return [...document.querySelectorAll('h1,h2,h3,h4')].filter((h) => h.offsetParent)"
                  ".map((h) => Number(h.tagName[1]))")
    expect(levels.count(1) == 1 and levels[0] == 1, levels)
    expect(all(b_ <= a + 1 for a, b_ in zip(levels, levels[1:])), levels)


def no_sideways(b):
    b.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    b.settle()
    wide = b.js("""
        const limit = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth <= limit)
            return [];
        return [document.documentElement.scrollWidth, ...[...document.querySelectorAll('body *')]
            .filter((e) => e.getBoundingClientRect().right > limit + 1 && !e.closest('.scroll, .sections'))
            .map((e) => e.outerHTML.slice(0, 120))].slice(0, 8)""")
    expect(not wide, wide)


@test_of_pair_too
def no_scrolling_sideways(b):
    for width in (320, 360, 768, 1024, 1400, 2200):
        b.open(width=width)
        no_sideways(b)


@test
def plots_follow_the_width(b):
    b.open(width=1400)
    need(b.all(".uplot"), "no plot")
    b.cdp("Emulation.setDeviceMetricsOverride", width=500, height=900, deviceScaleFactor=1, mobile=False)
    b.wait("return [...document.querySelectorAll('.uplot')].every((u) => u.offsetWidth <= 500)", "narrower plots")
    no_sideways(b)


def brightness(color):
    r, g, b = (int(x) for x in re.findall(r"\d+", color)[:3])
    return (r * 299 + g * 587 + b * 114) / 1000


@test_of_pair_too
def dark_and_light(b):
    colors = {}
    for scheme in ("light", "dark"):
        b.open(scheme=scheme)
        style = "return getComputedStyle(document.body)"
        colors[scheme] = [brightness(b.js(style + ".backgroundColor")), brightness(b.js(style + ".color"))]
    expect(colors["light"][0] > 200 and colors["light"][1] < 80, colors)
    expect(colors["dark"][0] < 60 and colors["dark"][1] > 180, colors)


PIXELS = """
const canvas = document.querySelector('.uplot canvas');
const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
const sum = [0, 0, 0];
for (let i = 0; i < data.length; i += 4)
    for (let c = 0; c < 3; c++)
        sum[c] += data[i + c] * data[i + 3] / 255;
return sum.map(Math.round).join()
"""


@test
def plots_change_colours_with_the_scheme(b):
    b.open(scheme="light")
    need(b.all(".uplot"), "no plot")
    light = b.js(PIXELS)
    b.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    b.wait(lambda: b.js(PIXELS) != light, "other colours")


@test
def it_prints(b):
    b.open(scheme="dark")
    pdf = base64.b64decode(b.cdp("Page.printToPDF", printBackground=True)["data"])
    expect(pdf.startswith(b"%PDF") and len(pdf) > 30_000, len(pdf))
    b.open(scheme="dark", media="print")
    expect(brightness(b.js("return getComputedStyle(document.body).color")) < 80, "light text on paper")
    expect(not b.one("nav.sections").is_displayed(), "the links are printed")
    expect(not any(e.is_displayed() for e in b.all(".table-tools")), "filters are printed")
    expect(b.one("#evidence").is_displayed() and b.one("#coverage table").is_displayed(), "the text is not printed")


# The span

def graphics(b):
    """What depends on the span: what the flame graph adds up to, and the first rows of the two tables."""
    return b.js("""
        const text = (selector) => document.querySelector(selector)?.textContent || '';
        return [document.querySelector('.flame .root')?.getAttribute('aria-label') || '',
            text('#victims > div:not([hidden])'), text('#loads > div:not([hidden])')]""")


def expect_span(b, what):
    b.wait("return page.span.get()", what)
    expect(b.status().startswith("Span "), b.status())
    expect(b.one("#span-clear").is_enabled(), "the span cannot be cleared")
    expect(b.one("#span-from").get_attribute("value") != "", "no number in from")


@test
def dragging_over_a_plot_selects(b):
    b.open()
    plot = need(b.all(".u-over"), "no plot")[0]
    before = graphics(b)
    b.drag(plot, 0.4, 0.8)
    expect_span(b, "a span by dragging")
    from_, to = b.span()["from"], b.span()["to"]
    view = b.js("return page.span.view()")
    length = view["to"] - view["from"]
    expect(abs(from_ - view["from"] - 0.4 * length) < 0.02 * length, (view, b.span()))
    expect(abs(to - view["from"] - 0.8 * length) < 0.02 * length, (view, b.span()))
    after = graphics(b)
    for i, what in enumerate(("flame graph", "victims", "loads")):
        if before[i]:
            expect(after[i] and after[i] != before[i], what + " did not follow the span")
    shown = b.js("return [...document.querySelectorAll('.u-select')].map((e) => e.offsetWidth)")
    expect(all(width > 0 for width in shown), "the span is not in all plots")
    b.click(b.one("#span-clear"))
    b.wait("return page.span.get() === null", "no span")
    b.settle()
    expect(graphics(b) == before, "clearing did not bring everything back")
    shown = b.js("return [...document.querySelectorAll('.u-select')].map((e) => e.offsetWidth)")
    expect(not any(shown), "the span is still in the plots")


def overlap(span, begin, length):
    return max(0, min(begin + length, span["to"]) - max(begin, span["from"]))


def select_middle(b):
    """Selects a span that begins and ends within a sample; returns it."""
    b.js("const {to} = page.data.bounds; page.span.set(to * 0.2 + 123, to * 0.6 + 77)")
    return b.span()


@test
def victims_of_a_span_add_up(b):
    b.open()
    operations = b.data()["operations"]
    rows = [dict(zip(operations["columns"], row), threads=1) for row in operations["rows"]]
    rows = need(rows + b.data()["waits"], "nobody waited")
    span = select_middle(b)
    wanted = sum(row["threads"] * overlap(span, row["t"], row["ms"]) for row in rows)
    count = sum(row["threads"] for row in rows if overlap(span, row["t"], row["ms"]) > 0)
    table = b.one("#victims .in-span table")
    expect(abs(sum(float(v) for v in b.js(COLUMN, table, 2)) - wanted) < 1, (b.js(COLUMN, table, 2), wanted))
    expect(sum(int(v) for v in b.js(COLUMN, table, 5)) == count, (b.js(COLUMN, table, 5), count))


@test
def stacks_of_a_span_add_up(b):
    b.open()
    lines = need(b.data()["offcpu"], "no blocked time by stack")
    states = {line["state"] for line in lines}
    span = select_middle(b)
    wanted = sum(line["ms"] * overlap(span, line["t"] - line["window_ms"], line["window_ms"]) / line["window_ms"]
                 for line in lines if line["state"] == "D" or "D" not in states)
    found = b.js("return document.querySelector('.flame .root').flameNode.value")
    expect(abs(found - wanted) < 1, (found, wanted))
    widths = b.js("return [...document.querySelectorAll('.flame .box.process rect')].map((r) => r.width.baseVal.value)")
    expect(abs(sum(widths) / b.one(".flame svg").size["width"] - 1) < 0.05, widths)


LIST_MS = 300       # lines of a list are not further apart


def list_times(loads, disk):
    """When the lists of loads of a disk begin."""
    times = sorted({load["t"] for load in loads if load["disk"] == disk})
    return [t for before, t in zip([-1e9, *times], times) if t - before > LIST_MS]


@test
def loads_of_a_span_are_a_difference(b):
    b.open()
    loads = b.data()["loads"]
    disk = need([load["disk"] for load in loads], "no load")[0]
    times = list_times(loads, disk)
    need(len(times) >= 4, "fewer than four lists")
    b.js("page.span.set(arguments[0] + 50, arguments[1] - 50)", times[1], times[3])

    def busy(t):
        return {(load["by"], load["pid"], load["tid"], load["name"]): load["busy_ms"] for load in loads
                if load["disk"] == disk and 0 <= load["t"] - t < LIST_MS}
    first, last = busy(times[1]), busy(times[3])
    wanted = sorted(value for value in (round(last[key] - first.get(key, 0), 3) for key in last) if value)
    found = b.js("return page.loads.inSpan(page.span.get()).loads.filter((l) => l.disk === arguments[0])"
                 ".map((l) => l.busy)", disk)
    expect(sorted(round(v, 3) for v in found if round(v, 3)) == wanted, (found, wanted))


@test
def dragging_out_of_a_plot_selects_to_its_end(b):
    b.open()
    plot = need(b.all(".u-over"), "no plot")[0]
    b.drag(plot, 0.5, 1.03)
    expect_span(b, "a span by dragging")
    view = b.js("return page.span.view()")
    expect(abs(b.span()["to"] - view["to"]) < 0.02 * (view["to"] - view["from"]), (b.span(), view))


@test
def dragging_over_the_strip_selects(b):
    b.open()
    b.drag(b.one(".strip-slider"), 0.7, 0.9)
    expect_span(b, "a span by dragging")


@test
def a_click_into_a_plot_clears(b):
    b.open()
    plot = need(b.all(".u-over"), "no plot")[0]
    b.js("page.span.set(200, 1500)")
    b.click(plot)
    b.wait("return page.span.get() === null", "no span")


@test
def keys_select(b):
    b.open()
    b.focus(".strip-slider")
    slider = b.one(".strip-slider")
    begin = float(slider.get_attribute("aria-valuenow"))
    b.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    b.wait(lambda: float(slider.get_attribute("aria-valuenow")) > begin, "the cursor moved")
    expect(b.span() is None, "moving selects")
    b.keys(*[Keys.ARROW_RIGHT] * 4, shift=True)
    expect_span(b, "a span by keys")
    first = b.span()
    b.keys(Keys.ARROW_LEFT, shift=True)
    b.wait(lambda: b.span() and b.span()["to"] < first["to"], "a shorter span")
    b.keys(Keys.ENTER)
    b.wait("return page.span.view().from === page.span.get().from", "zoomed in")
    b.keys(Keys.ESCAPE)
    b.wait("return page.span.get() === null", "no span")
    b.keys(Keys.ESCAPE)
    b.wait("return !page.span.isZoomed()", "zoomed out")
    b.keys(Keys.END)
    b.wait(lambda: slider.get_attribute("aria-valuenow") == slider.get_attribute("aria-valuemax"), "the end")


@test
def numbers_select(b):
    b.open()
    for id_, value in (("span-from", "0.2"), ("span-to", "1.5")):
        b.one("#" + id_).clear()
        b.one("#" + id_).send_keys(value)
    b.keys(Keys.ENTER)
    expect_span(b, "a span by numbers")
    expect(b.span() == {"from": 200, "to": 1500}, b.span())
    expect("0.2" in b.status() and "1.5" in b.status(), b.status())


@test
def the_span_is_announced(b):
    b.open()
    expect(b.one("#span-status").get_attribute("aria-live") == "polite", "not announced")


@test
def zoom_is_the_same_everywhere(b):
    b.open()
    need(b.all(".uplot"), "no plot")
    b.js("page.span.set(200, 1500)")
    b.click(b.one("#span-zoom"))
    b.wait("return page.span.view().from === 200 && page.span.view().to === 1500", "the view")
    b.settle()
    widths = b.js("return [...document.querySelectorAll('.plot .u-over')].map((e) => "
                  "[e.offsetWidth, e.parentElement.querySelector('.u-select').offsetWidth])")
    expect(all(abs(over - select) <= 2 for over, select in widths), widths)
    b.click(b.one("#span-all"))
    b.wait("return !page.span.isZoomed()", "all of it")


@test
def cursors_move_together(b):
    b.open()
    plots = need(b.all(".u-over"), "no plot")
    need(len(plots) > 1, "one plot only")
    b.js("arguments[0].scrollIntoView({block: 'center'})", plots[0])
    ActionChains(b.driver).move_to_element(plots[0]).perform()
    b.wait("return [...document.querySelectorAll('.legend b')].filter((e) => e.textContent).length > 1",
           "values of several plots")
    b.wait("return Number(document.querySelector('.strip-slider').getAttribute('aria-valuenow')) !== 0",
           "the cursor of the strip")


@test
def loads_say_for_which_time(b):
    b.open()
    loads = need(b.data()["loads"], "no load")
    times = list_times(loads, loads[0]["disk"])
    need(len(times) > 2, "fewer than three lists")
    b.js("page.span.set(arguments[0] + 300, arguments[1] - 300)", times[0], times[2])
    text = b.wait("return document.querySelector('#loads .in-span')?.innerText", "loads of the span")
    expect("%.1f" % (times[0] / 1000) in text and "%.1f" % (times[2] / 1000) in text, text[:300])


# Tables

COLUMN = """
const [table, column] = arguments;
return [...table.tBodies[0].rows].filter((r) => !r.hidden).map((r) => r.cells[column].dataset.value ?? null)
"""


@test
def tables_sort_by_mouse(b):
    b.open()
    table = need(b.all("#victims table tbody tr") and b.all("#victims table"), "no victims")[0]
    header = table.find_elements(By.CSS_SELECTOR, "th.num")[-1]
    column = b.js("return arguments[0].cellIndex", header)
    for sort, reverse in (("descending", True), ("ascending", False)):
        b.click(header.find_element(By.TAG_NAME, "button"))
        b.wait(lambda s=sort: header.get_attribute("aria-sort") == s, sort)
        values = [float(v) for v in b.js(COLUMN, table, column) if v is not None]
        expect(values == sorted(values, reverse=reverse), values)
    expect(len(b.js("return [...arguments[0].querySelectorAll('[aria-sort]')]", table)) == 1, "two columns are sorted")


@test
def tables_sort_by_key(b):
    b.open()
    need(b.all("#coverage tbody tr"), "no coverage")
    b.focus("#coverage th:nth-child(3) button")
    b.keys(Keys.ENTER)
    b.wait("return document.querySelector('#coverage th:nth-child(3)').ariaSort === 'ascending'", "sorted")
    texts = b.js("return [...document.querySelector('#coverage table').tBodies[0].rows]"
                 ".map((r) => r.cells[2].textContent)")
    expect(texts == sorted(texts, key=lambda t: t.strip()), texts)


@test
def values_that_are_not_known_come_last(b):
    b.open()
    table = need(b.all("#statements table"), "no statements")[0]
    column = b.js("return [...arguments[0].tHead.rows[0].cells].findIndex((c) => c.innerText === 'Blocked by')",
                  table)
    need(None in b.js(COLUMN, table, column), "all are known")
    button = table.find_elements(By.CSS_SELECTOR, "th button")[column]
    for _ in range(2):
        b.click(button)
        values = b.js(COLUMN, table, column)
        known = [v for v in values if v is not None]
        expect(values[:len(known)] == known, values)


@test
def tables_filter(b):
    b.open()
    frame = need(b.all("#coverage .table-frame"), "no coverage")[0]
    field = frame.find_element(By.CSS_SELECTOR, "input[type=search]")
    rows = len(frame.find_elements(By.CSS_SELECTOR, "tbody tr"))
    field.send_keys("fsync")
    b.wait(lambda: 0 < len(visible_rows(b, frame)) < rows, "fewer rows")
    expect(all("fsync" in row for row in visible_rows(b, frame)), visible_rows(b, frame))
    said = frame.find_element(By.CSS_SELECTOR, "[role=status]").text
    expect("of %d" % rows in said, said)
    field.send_keys("zzzz")
    b.wait(lambda: not visible_rows(b, frame), "no rows")
    field.send_keys(Keys.CONTROL + "a", Keys.DELETE)
    b.wait(lambda: len(visible_rows(b, frame)) == rows, "all rows")


def visible_rows(b, frame):
    return b.js("return [...arguments[0].querySelectorAll('tbody tr')].filter((r) => !r.hidden)"
                ".map((r) => r.textContent)", frame)


@test
def loads_are_shown_by_kind(b):
    b.open()
    radios = need(b.all("#loads input[type=radio]"), "one kind only")
    kind = radios[-1].get_attribute("value")
    b.click(radios[-1])
    shown = lambda: {row.get_attribute("data-by") for row in b.all("#loads tbody tr") if row.is_displayed()}
    b.wait(lambda: shown() == {kind}, kind)


# Graphics

def zoom_path(b):
    return b.js("return document.querySelector('.flame-path').textContent")


@test
def flame_zooms_by_mouse(b):
    b.open()
    boxes = need(b.all(".flame .box.user, .flame .box.kernel"), "no stack")
    expect(zoom_path(b) == "", "zoomed from the start")
    b.click(boxes[-1])
    b.wait(lambda: zoom_path(b) != "", "zoomed in")
    expect(b.one(".flame .outside").is_displayed(), "the way back is not shown")
    b.click(b.one(".flame .root"))
    b.wait(lambda: zoom_path(b) == "", "zoomed out")


@test
def flame_zooms_by_keys(b):
    b.open()
    need(b.all(".flame .box"), "no stack")
    b.focus('.flame .box[tabindex="0"]')
    b.keys(Keys.ARROW_UP, Keys.ARROW_UP)
    label = b.js("return document.activeElement.getAttribute('aria-label')")
    expect(label and not label.startswith("All"), label)
    b.keys(Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_DOWN, Keys.ENTER)
    b.wait(lambda: zoom_path(b) != "", "zoomed in")
    expect(b.js("return document.activeElement.matches('.box')"), "the focus was lost")
    b.keys(Keys.ESCAPE)
    b.wait(lambda: zoom_path(b) == "", "zoomed out")
    expect(b.js("return document.activeElement.matches('.box')"), "the focus was lost")
    expect(len(b.all('.flame .box[tabindex="0"]')) == 1, "the tab key stops at several boxes")


@test
def flame_finds(b):
    b.open()
    boxes = need(b.all(".flame .box.kernel"), "no function of the kernel")
    name = boxes[0].get_attribute("aria-label").split(",")[0]
    field = b.one("#stacks .tools input[type=search]")
    field.send_keys(name[:8].upper())
    b.wait(lambda: b.all(".flame .match"), "a match")
    said = b.one("#stacks .tools [role=status]").text
    expect(re.search(r"\d+ % matched", said), said)
    share = float(re.match(r"[\d.]+", said).group())
    expect(0 < share <= 100, said)
    field.send_keys("no such function")
    b.wait(lambda: b.one("#stacks .tools [role=status]").text == "no match", "no match")


@test
def a_search_is_no_pattern(b):
    b.open()
    need(b.all(".flame .box"), "no stack")
    b.one("#stacks .tools input[type=search]").send_keys(".*[(")
    b.wait(lambda: b.one("#stacks .tools [role=status]").text == "no match", "no match")
    expect(not b.unwanted(), b.unwanted())


@test
def flame_has_a_table(b):
    b.open()
    need(b.all(".flame .box"), "no stack")
    rows = b.js("return document.querySelectorAll('.top-stacks tbody tr').length")
    expect(1 <= rows <= 10, rows)


@test
def lanes_by_keys(b):
    b.open()
    need(b.all(".lanes .bar"), "no operation")
    b.click(b.all("#threads input[type=radio]")[1])
    b.wait(lambda: b.all(".lanes .bar[data-o]"), "a lane for each thread")
    need(len(b.all(".lanes .bar")) > 1, "one operation only")
    b.focus('.lanes .bar[tabindex="0"]')
    first = b.js("return document.activeElement.getAttribute('aria-label')")
    b.keys(Keys.ARROW_RIGHT)
    b.wait(lambda: b.js("return document.activeElement.getAttribute('aria-label')") != first, "the next bar")
    b.wait("return !document.querySelector('.tip').hidden", "the tip of the bar")
    b.keys(Keys.ESCAPE)
    b.wait("return document.querySelector('.tip').hidden", "no tip")


@test
def many_threads_are_grouped(b):
    b.open()
    threads = {row[b.data()["operations"]["columns"].index("tid")] for row in b.data()["operations"]["rows"]}
    threads |= {(wait.get("database"), wait.get("session"), wait.get("lock")) for wait in b.data()["waits"]}
    need(threads, "nobody waited")
    grouped = bool(b.all(".lanes .bar.group"))
    expect(grouped == (len(threads) > 40), "%d threads" % len(threads))


@test
def latency_has_a_table(b):
    b.open()
    details = need(b.all("#latency details"), "no latency")[0]
    b.click(details.find_element(By.TAG_NAME, "summary"))
    b.wait(lambda: details.find_elements(By.CSS_SELECTOR, "tbody tr"), "the table")
    before = details.text
    b.click(b.all("#latency input[type=radio]")[1])
    b.wait(lambda: not details.find_elements(By.CSS_SELECTOR, "tbody tr"), "the table is made anew")
    b.click(details.find_element(By.TAG_NAME, "summary"))
    b.wait(lambda: details.find_elements(By.CSS_SELECTOR, "tbody tr"), "the table")
    expect(details.text != before, "the same for the queue and the device")


@test
def integers_beyond_doubles_are_drawn(b):
    b.open()
    need(any(isinstance(load["bytes"], str) for load in b.data()["loads"]), "no integer beyond 2^53")
    b.js("page.span.set(page.data.bounds.from, page.data.bounds.to)")
    text = b.js("return document.querySelector('#loads').textContent")
    expect("NaN" not in b.js("return document.body.textContent"), "NaN is on the page")
    expect("undefined" not in text and "null" not in text, "what is not known is not written as a dash")


AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then((r) => done(r.violations
    .filter((v) => ['serious', 'critical'].includes(v.impact))
    .map((v) => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3)
        .map((n) => n.target + ' ' + n.html.slice(0, 120)).join(' | '))),
    (e) => done(['axe: ' + e]));
"""


def add_axe_tests(path):
    source = pathlib.Path(path).read_text()
    ways = ((1400, "light", False), (1400, "dark", True), (360, "light", True), (360, "dark", False))
    for width, scheme, used in ways:
        def check(b, width=width, scheme=scheme, used=used):
            b.open(width=width, scheme=scheme)
            if used:
                use_everything(b)
            b.js(source)
            found = b.driver.execute_async_script(AXE)
            expect(not found, found)
        check.__name__ = "axe_%d_%s%s" % (width, scheme, "_used" if used else "")
        test_of_pair_too(check)


def run(browser, wanted):
    passed = failed = skipped = number = 0
    for function in PAIR_TESTS if browser.is_pair() else TESTS:
        name = name_of(function)
        if wanted and name not in wanted:
            continue
        number += 1
        try:
            function(browser)
            print("ok %d - %s" % (number, name), flush=True)
            passed += 1
        except Skip as reason:
            print("ok %d - %s # SKIP %s" % (number, name, reason), flush=True)
            skipped += 1
        except Exception as error:          # whatever fails fails this test and no other
            print("not ok %d - %s" % (number, name))
            for line in str(error).splitlines()[:12] or [repr(error)]:
                print("#   " + line[:600], flush=True)
            failed += 1
    print("1..%d" % number)
    print("# %d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return failed


def main():
    parser = argparse.ArgumentParser(description="Tests the page of an incident in Chromium.")
    parser.add_argument("--axe", help="axe.min.js of axe-core: serious and critical findings are failures")
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("test", nargs="*")
    arguments = parser.parse_args()
    if arguments.axe:
        add_axe_tests(arguments.axe)
    browser = Browser(arguments.page)
    try:
        failed = run(browser, arguments.test)
    finally:
        browser.driver.quit()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
