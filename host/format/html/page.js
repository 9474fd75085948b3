// What a page does beyond showing its text: the theme, the filter, plots of the tables that it has.
(() => {
  "use strict";

  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // The theme: the system's, or one that was chosen, which is remembered where the browser lets us.
  const kept = {
    get: () => { try { return localStorage.getItem("numsan-theme") || ""; } catch { return ""; } },
    set: (name) => { try { localStorage.setItem("numsan-theme", name); } catch { /* a file may have no storage */ } },
  };
  const themes = document.getElementById("themes");
  const choose = (name) => {
    if (name) root.dataset.theme = name; else delete root.dataset.theme;
    for (const button of all("button", themes)) button.setAttribute("aria-pressed", String(button.dataset.theme === name));
    plots.forEach((plot) => plot.draw());
  };

  // Plots. Each figure has its table; what is drawn is read from there.
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const number = (cell) => (cell.dataset.v === "" || cell.dataset.v === undefined ? null : Number(cell.dataset.v));
  const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 4], [1, 4], [12, 4], [6, 2, 2, 2]];
  const shapes = ["circle", "rect", "triangle", "rectRot", "cross", "star", "crossRot", "dash"];
  const magnitude = (value) => {
    if (value === null || value === 0) return String(value);
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e6) return String(Number(Number(value).toPrecision(4)));
    return Number(value).toExponential(2).replace(/\.?0+e/, "e");
  };
  const axis = (title, more) => Object.assign({
    title: { display: true, text: title, color: colour("--quiet") },
    ticks: { color: colour("--quiet"), maxRotation: 0, autoSkipPadding: 12 },
    grid: { color: colour("--track"), borderColor: colour("--quiet") },
  }, more);

  const lines = (figure) => {
    const names = all("thead th", figure).slice(1).map((cell) => cell.textContent);
    const rows = all("tbody tr", figure);
    const steps = rows.map((row) => Number(row.cells[0].textContent));
    const series = names.map((name, i) => ({
      name,
      points: rows.map((row, at) => ({ x: steps[at], y: number(row.cells[i + 1]) })).filter((point) => point.y > 0),
      bad: rows.flatMap((row, at) => (row.cells[i + 1].dataset.bad ? [steps[at]] : [])),
    }));
    const first = Math.min(...steps), last = Math.max(...steps);
    const limits = [["largest", "largest"], ["normal", "smallest normal"], ["smallest", "smallest"]]
      .filter(([key]) => figure.dataset[key]).map(([key, name]) => ({ name, value: Number(figure.dataset[key]) }));
    const values = series.flatMap((one) => one.points.map((point) => point.y));
    if (values.length === 0) return null;
    // A limit is drawn where it is in sight of the values: half of all powers of ten stand between 1 and the largest.
    const highest = Math.max(...values), lowest = Math.min(...values);
    const shown = limits.filter((limit) => limit.name === "largest" || limit.value > lowest / 1e8);
    const top = Math.max(highest, ...shown.map((limit) => limit.value));
    const sets = series.map((one, i) => {
      const tone = colour(`--series-${(i % 8) + 1}`);
      return {
        label: one.name, data: one.points, borderColor: tone, backgroundColor: tone, borderDash: dashes[i % 8],
        pointStyle: shapes[i % 8], pointRadius: one.points.length * 20 > figure.clientWidth ? 2 : 4, borderWidth: 2,
      };
    });
    for (const [i, one] of series.entries()) {
      if (one.bad.length === 0) continue;
      sets.push({
        label: `${one.name}: not finite`, data: one.bad.map((x) => ({ x, y: top })), showLine: false, pointStyle: "crossRot",
        pointRadius: 7, borderWidth: 3, borderColor: colour(`--series-${(i % 8) + 1}`),
      });
    }
    for (const [i, limit] of shown.entries()) {
      sets.push({
        label: `${limit.name} ${figure.dataset.type}: ${magnitude(limit.value)}`,
        data: [{ x: first, y: limit.value }, { x: last === first ? first + 1 : last, y: limit.value }],
        borderColor: colour("--text"), borderDash: [[10, 4], [4, 4], [2, 4]][i % 3], borderWidth: 1.5, pointRadius: 0,
      });
    }
    return {
      type: "line", data: { datasets: sets },
      options: {
        scales: {
          x: axis("step", { type: "linear", min: first, max: last === first ? first + 1 : last, ticks: { color: colour("--quiet"), precision: 0, maxRotation: 0 } }),
          y: axis("largest magnitude", {
            type: "logarithmic",
            ticks: {
              color: colour("--quiet"), maxTicksLimit: 8, autoSkipPadding: 8,
              callback: (value) => (Math.abs(Math.log10(value) % 1) < 1e-6 ? magnitude(value) : null),
            },
          }),
        },
        plugins: {
          legend: { labels: { color: colour("--text"), usePointStyle: false, boxWidth: 30 } },
          tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${magnitude(item.parsed.y)}` } },
        },
      },
    };
  };

  const nights = (figure) => {
    const names = all("thead th", figure).slice(1).map((cell) => cell.textContent);
    const rows = all("tbody tr", figure);
    const sets = names.map((name, i) => {
      const tone = colour(`--series-${(i % 8) + 1}`);
      return {
        label: name, data: rows.map((row) => number(row.cells[i + 1])), borderColor: tone, backgroundColor: tone,
        borderDash: dashes[i % 8], pointStyle: shapes[i % 8], pointRadius: 5, borderWidth: 2, spanGaps: false,
      };
    });
    return {
      type: "line", data: { labels: rows.map((row) => row.cells[0].textContent), datasets: sets },
      options: {
        scales: {
          x: axis("night"),
          y: axis(figure.dataset.unit, {
            type: figure.dataset.scale, ticks: { color: colour("--quiet"), maxTicksLimit: 8, callback: magnitude },
          }),
        },
        plugins: { legend: { labels: { color: colour("--text"), usePointStyle: true } } },
      },
    };
  };

  const bars = (figure) => {
    const rows = all("tbody tr", figure);
    const tones = { bad: "--error", zero: "--warning", subnormal: "--warning", normal: "--values" };
    return {
      type: "bar",
      data: {
        labels: rows.map((row) => row.cells[0].textContent),
        datasets: [{
          label: "values", data: rows.map((row) => number(row.cells[1])),
          backgroundColor: rows.map((row) => colour(tones[row.dataset.role] || "--values")), minBarLength: 3,
          categoryPercentage: 1, barPercentage: .9,
        }],
      },
      options: {
        scales: { x: axis("magnitude from"), y: axis("values", { beginAtZero: true, ticks: { color: colour("--quiet"), precision: 0 } }) },
        plugins: { legend: { display: false } },
      },
    };
  };

  const kinds = { history: lines, histogram: bars, nights };
  class Plot {
    constructor(figure) {
      this.figure = figure;
      this.holder = null;
      this.chart = null;
    }
    // Of what is not to be seen nothing is drawn: it has no size.
    draw() {
      if (this.figure.closest("details:not([open])")) return;
      const made = kinds[this.figure.dataset.plot](this.figure);
      if (made === null) return;
      if (this.chart) this.chart.destroy();
      if (!this.holder) {
        this.holder = document.createElement("div");
        this.holder.className = "canvas";
        this.holder.append(document.createElement("canvas"));
        const canvas = this.holder.firstChild;
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", `plot: ${this.figure.querySelector("figcaption").textContent.trim()}; the figures follow as a table`);
        this.figure.querySelector("figcaption").after(this.holder);
      }
      Object.assign(made.options, { animation: false, responsive: true, maintainAspectRatio: false });
      this.chart = new Chart(this.holder.firstChild, made);
    }
  }
  const plots = typeof Chart === "undefined" ? [] : all("figure[data-plot]").map((figure) => new Plot(figure));
  for (const details of all("details")) {
    details.addEventListener("toggle", () => {
      if (details.open) plots.filter((plot) => plot.chart === null && details.contains(plot.figure)).forEach((plot) => plot.draw());
    });
  }
  if (themes) {
    themes.hidden = false;
    themes.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      kept.set(button.dataset.theme);
      choose(button.dataset.theme);
    });
    choose(kept.get());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.draw()));
  }

  // A link to what is closed opens it.
  const reveal = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* no such name */ }
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  for (const link of all("a.mark, .chain a, a[href^='#code-']")) link.addEventListener("click", () => setTimeout(reveal));

  // The filter.
  const filter = document.getElementById("filter");
  if (filter) {
    const findings = all(".finding").map((element) => ({ element, words: element.textContent.toLowerCase() }));
    const text = document.getElementById("filter-text");
    const code = document.getElementById("filter-code");
    const category = document.getElementById("filter-category");
    const count = document.getElementById("filter-count");
    const apply = () => {
      const severities = new Set(all("input[type=checkbox]", filter).filter((box) => box.checked).map((box) => box.value));
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { element, words: own } of findings) {
        const { severity, code: its, category: cause } = element.dataset;
        const fits = severities.has(severity) && (!code.value || code.value === its) &&
          (!category.value || category.value === cause) && words.every((word) => own.includes(word));
        element.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      count.textContent = `${shown} of ${findings.length} findings shown`;
    };
    filter.hidden = false;
    filter.addEventListener("input", apply);
    filter.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }
})();
