"""The HTML pages in a headless Chromium: no complaint, nothing loaded, no scrolling sideways, readable in both themes,
by keyboard and without scripts, whatever is in the reports."""
import html
import json
import re
import subprocess

import chromium
import jsonschema
import made_nights
import made_reports
import pytest
import run_numsan
from nightly import in_ci

pytestmark = pytest.mark.usefixtures("build")
HOSTILE = ('</script></style></title><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\' " `'
           " {{x}} {{{y}}}")

# Visible text whose colour is too close to what it stands on: [text, ratio].
CONTRAST = """(() => {
  const parse = (text) => {
    const part = text.match(/[\\d.]+/g).map(Number);
    return part.length > 3 ? part : [...part, 1];
  };
  const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => c.slice(0, 3).map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (at) => {
    for (; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const at = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !at.checkVisibility() || /^(SCRIPT|STYLE)$/.test(at.tagName)) continue;
    const [a, b] = [light(parse(getComputedStyle(at).color)), light(ground(at))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push([walk.currentNode.textContent.trim().slice(0, 40), ratio]);
  }
  return found;
})()"""
OPEN_ALL = "for (const one of document.querySelectorAll('details')) one.open = true"
WIDER = """[...document.querySelectorAll('body *')].filter((one) => one.checkVisibility() &&
  one.getBoundingClientRect().right > document.documentElement.clientWidth + 1 &&
  !one.closest('.scroll, pre, .unseen, .skip, table'))
  .map((one) => one.outerHTML.slice(0, 120))"""


def numsan(*arguments):
    done = subprocess.run([run_numsan.COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.fixture(scope="module")
def browser():
    if chromium.COMMAND is None:
        pytest.skip("chromium is not installed: scripts/setup --tests installs it where the distribution has it")
    with chromium.Chromium() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Name -> path of a page."""
    folder = tmp_path_factory.mktemp("pages")
    many = made_reports.example()
    many["findings"] += [made_reports.finding(i, severity=["error", "warning", "info"][i % 3], step=7 * i)
                         for i in range(1, 60)]
    hostile = made_reports.night()
    cases = {"rich": made_nights.rich(), "healthy": [made_reports.night()[2]], "many": [many],
             "killed": [made_reports.night()[3]],
             "odd": [made_reports.hostile()],
             "hostile": [made_nights.replaced(report, HOSTILE) for report in made_nights.rich() + hostile]}
    paths = {}
    for name, reports in cases.items():
        made_reports.write(folder / name, reports)
        paths[name] = folder / f"{name}.html"
        numsan("report", folder / name, "--format", "html", "-o", paths[name])
    paths["history"] = folder / "history.html"
    numsan("history", made_nights.write_nights(folder / "nights"), "--format", "html", "-o", paths["history"])
    hostile = folder / "hostile-nights"
    for night, reports in made_nights.nights().items():
        made_reports.write(hostile / night, [made_nights.replaced(report, HOSTILE) for report in reports])
    paths["hostile history"] = folder / "hostile-history.html"
    numsan("history", hostile, "--format", "html", "-o", paths["hostile history"])
    return paths


@pytest.mark.parametrize("name", ["rich", "many", "healthy", "killed", "history"])
@pytest.mark.parametrize("theme", in_ci(["light", "dark"], "light"))
@pytest.mark.parametrize("width", [400, 1400])
def test_looks(browser, pages, name, theme, width):
    page = browser.open(pages[name], width, theme=theme)
    for opened in (False, True):
        if opened:
            page.evaluate(OPEN_ALL)
        assert page.complaints() == [] and page.loaded() == []
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert page.evaluate(WIDER) == []
        assert page.evaluate(CONTRAST) == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) > 384) == (theme == "light")


@pytest.mark.parametrize("name", ["odd", "hostile", "hostile history"])
def test_nothing_in_a_report_is_a_part_of_the_page(browser, pages, name):
    page = browser.open(pages[name], 400)
    page.evaluate(OPEN_ALL)
    assert page.complaints() == [] and page.loaded() == []
    assert page.evaluate("window.hacked === undefined")
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("document.querySelectorAll('img, iframe, object, embed, base, form[action]').length") == 0
    assert page.evaluate("[...document.querySelectorAll('*')].filter((one) => [...one.attributes]"
                         ".some((attribute) => attribute.name.startsWith('on'))).length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    if name != "odd":
        assert "onerror" in page.evaluate("document.querySelector('main').textContent")
        assert "{{x}} {{{y}}}" in page.evaluate("document.querySelector('main').textContent")


def test_plots_are_drawn_of_the_tables(browser, pages):
    page = browser.open(pages["rich"], 1400)
    drawn = page.evaluate("[...document.querySelectorAll('.finding[open] figure canvas')].map((canvas) => {"
                          "const chart = Chart.getChart(canvas); return {label: canvas.getAttribute('aria-label'),"
                          "names: chart.data.datasets.map((one) => one.label),"
                          "points: chart.data.datasets.map((one) => one.data.length),"
                          "y: chart.options.scales.y.type}; })")
    histogram, history = drawn
    assert histogram["points"] == [13] and "input[1]" in histogram["label"]
    assert history["y"] == "logarithmic"
    assert history["names"][:4] == ["aten::sqrt (this finding)", "aten::sum losses.py:31",
                                    "aten::sqrt (this finding): not finite", "aten::sum losses.py:31: not finite"]
    assert history["points"][:4] == [30, 30, 3, 3]
    assert "largest float32: 3.4e+38" in history["names"]


def test_all_text_is_there_without_scripts(browser, pages):
    page = browser.open(pages["rich"], 400, scripts=False)
    markup = re.sub(r"<(script|style).*?</\1>", "", pages["rich"].read_text(), flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]*>", " ", markup))
    finding = made_nights.rich()[0]["findings"][0]
    for words in [*finding["help"], *finding["evidence"], finding["location"]["code"], *finding["excerpt"]["lines"],
                  finding["escape"]["name"], "488.4", "1 300", "not finite since step 412", "N3"]:
        assert words in text, words
    assert page.loaded() == []
    assert page.evaluate("document.getElementById('filter').checkVisibility()") is False
    assert page.evaluate("document.getElementById('themes').checkVisibility()") is False
    assert page.evaluate("document.querySelector('.finding[open] .help').checkVisibility()") is True


def test_a_result_that_was_not_read_has_no_values(browser, tmp_path):
    """As those of operators on integers."""
    reports = made_nights.rich()
    chain = reports[0]["findings"][0]["chain"]
    chain.insert(0, {**chain[0], "op": "aten::gt", "bad": False, "absmax": None, "absmin": None})
    path, = made_reports.write(tmp_path, reports[:1], "report.json")
    numsan("report", path, "--format", "html", "-o", tmp_path / "page.html")
    page = browser.open(tmp_path / "page.html", 400)
    ways = page.evaluate("[...document.querySelectorAll('.finding[open] .chain li')].map((one) => one.textContent)")
    unread = [way for way in ways if "aten::gt" in way]
    assert len(unread) == 1 and "not finite" not in unread[0] and "magnitude" not in unread[0], ways
    assert sum("magnitude" in way for way in ways) == sum(link["absmax"] is not None for link in chain), ways


def test_filter(browser, pages):
    page = browser.open(pages["many"], 1400)
    shown = "[...document.querySelectorAll('.finding')].filter((one) => !one.hidden).length"
    said = "document.getElementById('filter-count').textContent"
    assert page.evaluate(shown) == 60 and page.evaluate(said) == "60 of 60 findings shown"

    def set_value(name, value):
        page.evaluate(f"(() => {{ const one = document.getElementById('{name}'); one.value = '{value}';"
                      "one.dispatchEvent(new Event('input', {bubbles: true})); })()")

    page.evaluate("document.querySelector('#filter [value=warning]').click()")
    page.evaluate("document.querySelector('#filter [value=info]').click()")
    assert page.evaluate(shown) == 20
    set_value("filter-text", "X_21.sqrt")
    assert page.evaluate(shown) == 1 and page.evaluate(said) == "1 of 60 findings shown"
    set_value("filter-text", "")
    set_value("filter-category", "N3")
    assert page.evaluate(shown) == 20
    set_value("filter-code", "NS102")
    assert page.evaluate(shown) == 20
    set_value("filter-text", "nowhere to be found")
    assert page.evaluate(shown) == 0


def test_a_theme_that_was_chosen_is_kept(browser, pages):
    page = browser.open(pages["rich"], 1400, theme="light")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    line = "Chart.getChart(document.querySelector('[data-plot=history] canvas')).data.datasets[0].borderColor"
    colour = page.evaluate(line)
    page.evaluate("document.querySelector('[data-theme=dark]').click()")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.evaluate("document.querySelector('#themes [aria-pressed=true]').textContent") == "dark"
    assert page.evaluate(line) != colour, "plots are of the theme, too"
    assert page.complaints() == []


def test_keyboard(browser, pages):
    """Tab reaches all that can be worked, in the order of the page; what is closed opens by a key; and a mark of the
    time line leads to its finding."""
    page = browser.open(pages["many"], 1400)
    names = []
    for _ in range(8):
        page.press("Tab", 9)
        names.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 20)"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", names
    assert names[:4] == ["skip to the findings", "system", "light", "dark"]
    page.evaluate("document.querySelector('#finding-9 > summary').focus()")
    page.press("Enter", 13)
    page.press(" ", 32)
    page.evaluate("document.querySelector('a.mark[href=\"#finding-7\"]').click()")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert page.evaluate("document.getElementById('finding-7').open") is True


def test_headings_and_names(browser, pages):
    for name in ("rich", "history"):
        page = browser.open(pages[name], 1400)
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4, h5')].map((one) => +one.tagName[1])")
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after <= before + 1 for before, after in zip(levels, levels[1:])), levels
        assert page.evaluate("document.documentElement.lang") == "en" and page.evaluate("document.title")
        unnamed = page.evaluate("[...document.querySelectorAll('canvas, [role=region], [role=img], input, select')]"
                                ".filter((one) => !one.getAttribute('aria-label') && !one.closest('label') &&"
                                "!one.getAttribute('aria-labelledby')).length")
        assert unnamed == 0
        assert page.evaluate("document.querySelectorAll('[id]').length") == page.evaluate(
            "new Set([...document.querySelectorAll('[id]')].map((one) => one.id)).size")


def test_many_findings_are_shown_in_part(tmp_path):
    report = made_reports.example()
    report["findings"] = [made_reports.finding(i) for i in range(2150)]
    path, = made_reports.write(tmp_path, [report])
    page = numsan("report", path, "--format", "html")
    assert page.count('class="finding panel') == 100 and page.count("<tr data-severity") == 2000
    assert "50 further findings are not on this page" in page


def test_ranks_of_one_job_are_one_page(pages):
    page = pages["rich"].read_text()
    assert page.count('class="finding panel') == 2 and "ranks 0-1" in page and "in 2 reports" in page
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>', page)
    assert [row for row in rows if row.endswith(".json")] == [
        str(pages["rich"].with_suffix("") / f"numsan-{rank}.json") for rank in range(4)]


PROGRAM = """
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
mask = torch.ones(8, 1)
for step in range(5):
    mask[0] = float(step < 4)
    scaled = model(torch.ones(8, 4)) * mask
    loss = scaled.reciprocal().sum()  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_run_brings_what_a_page_shows(browser, warm, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    result = run_numsan.run_watched_fork(tmp_path / "train.py", cwd=tmp_path)
    finding = result.findings[0]
    jsonschema.validate(result.report, json.loads(run_numsan.SCHEMA.read_text()))
    way = [(link["role"], link["op"]) for link in finding["chain"]]
    assert ("before", "aten::mul") in way and way[-1] == ("after", "aten::sum"), way
    assert len(finding["chain"][way.index(("before", "aten::mul"))]["history"]) == 5
    assert sum(finding["inputs"][0]["exponents"]["counts"]) == 7
    lines = finding["excerpt"]["lines"]
    assert lines[finding["location"]["line"] - finding["excerpt"]["first"]].endswith("# BUG") and len(lines) == 8
    path, = made_reports.write(tmp_path, [result.report], "report.json")
    numsan("report", path, "--format", "html", "-o", tmp_path / "page.html")
    page = browser.open(tmp_path / "page.html", 400)
    assert page.complaints() == []
    assert page.evaluate("document.querySelectorAll('.finding[open] canvas').length") == 2
    assert page.evaluate("document.querySelector('.line.marked').textContent").endswith("# BUG")
    assert page.evaluate("document.querySelectorAll('.chain li.after').length") >= 1
