/* Charts of the numbers that the page has. A chart is made once, and then only gets new numbers. Loaded last, when the
   page is there. */
(() => {
  "use strict";
  const { $, $$, onDrawn } = Studio;
  const { count, duration, span } = Studio.values;
  const { options, ordered, readColors, stacked, HEIGHT } = Studio.drawing;
  const charts = new Map(); // id of a plot → what it draws
  const FIRST_KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  const OUT = { left: -10, top: -10 };

  function read(plot) {
    const given = JSON.parse(plot.dataset.plot), key = $$("[data-look]", plot.parentElement);
    const named = given.values.map((values, at) => (
      { look: key[at].dataset.look, word: $(".word", key[at]).textContent, values }));
    const lines = ordered(named), every = given.values[0].map((_, at) => given.from + (at + 0.5) * given.step);
    const looks = lines.map(({ look }) => look);
    const data = [every, ...stacked(looks, lines.map(({ values }) => values))];
    return { plot, from: given.from, step: given.step, kind: given.kind, count: every.length, lines, data };
  }

  // --- the values at the cursor, in the place of those of the whole range -------------------------------------------
  const text = (chart, value) => (value === null ? "–" : chart.kind === "count" ? count(value) : duration(value));
  function moment({ from, step }, at) {
    const began = from + at * step;
    return span(began, step) + ((began + step) * 1000 > Date.now() ? " so far" : "");
  }
  function point(chart, at) {
    const part = chart.plot.parentElement, when = $(".when", part), key = $$("[data-look]", part);
    const isThere = at !== null && at !== undefined && at < chart.count;
    part.classList.toggle("pointed", isThere);
    when.textContent = isThere ? moment(chart, at) : when.dataset.when;
    for (const line of chart.lines) {
      const place = $("b", key[line.at]);
      place.textContent = isThere ? text(chart, line.values[at]) : place.dataset.whole;
    }
  }
  function say(chart, at) {
    const values = chart.lines.toSorted((one, other) => one.at - other.at)
      .map((line) => `${line.word} ${line.values[at] === null ? "no value" : text(chart, line.values[at])}`);
    $("#say").textContent = `${moment(chart, at)}: ${values.join(", ")}`;
  }
  function move(chart, at) {
    const { u } = chart, { min, max } = u.scales.x;
    const inView = chart.data[0].map((x, i) => (x >= min && x <= max ? i : -1)).filter((i) => i >= 0);
    const next = Math.max(inView[0], Math.min(inView.at(-1), at));
    u.setCursor({ left: u.valToPos(chart.data[0][next], "x"), top: 0 }, true, true);
    say(chart, next);
  }
  function press(event) {
    const chart = charts.get(event.target.id), { key } = event;
    if (!chart || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key in FIRST_KEYS) {
      event.preventDefault();
      const at = chart.u.cursor.idx ?? (key === "ArrowLeft" ? chart.count : -1);
      move(chart, at + FIRST_KEYS[key]);
    } else if (key === "Escape") {
      chart.u.setCursor(OUT, true, true);
      showAll();
    }
  }

  // --- zoom: all charts show the same part --------------------------------------------------------------------------
  const ends = ({ from, step, count: n }) => ({ min: from, max: from + step * n });
  function isWhole({ u, ...chart }) {
    const { min, max } = ends(chart);
    return u.scales.x.min <= min && u.scales.x.max >= max;
  }
  function zoomed() {
    $("[data-all]").hidden = [...charts.values()].every((chart) => isWhole(chart));
  }
  function showAll() {
    for (const chart of charts.values()) chart.u.setScale("x", ends(chart));
  }

  // --- made once, then updated --------------------------------------------------------------------------------------
  function make(plot, drawn) {
    const chart = { ...read(plot), drawn }, made = options(chart, plot.clientWidth);
    made.hooks.setCursor = [(u) => chart.u && point(chart, u.cursor.idx)];
    made.hooks.setScale = [(u, name) => name === "x" && chart.u && zoomed()];
    charts.get(plot.id)?.u.destroy();
    charts.set(plot.id, chart);
    chart.u = new uPlot(made, chart.data, plot);
    sizes.observe(plot);
  }
  function update(chart, drawn) {
    const { u } = chart, isAll = isWhole(chart), { min, max } = u.scales.x;
    Object.assign(chart, read(chart.plot), { drawn });
    u.batch(() => {
      u.setData(chart.data, false);
      u.setScale("x", isAll ? ends(chart) : { min, max });
    });
  }
  function draw() {
    for (const plot of $$("#charts .plot")) {
      const chart = charts.get(plot.id), drawn = plot.dataset.plot;
      if (chart?.plot !== plot) make(plot, drawn);
      else if (chart.drawn !== drawn) update(chart, drawn);
      if (chart) point(chart, chart.u.cursor.idx); // the server has drawn the key of the whole range
    }
  }
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect: { width } } of entries) {
      const u = charts.get(target.id)?.u;
      if (u && width && width !== u.width) u.setSize({ width, height: HEIGHT });
    }
  });
  function repaint() {
    readColors();
    for (const { u } of charts.values()) u.redraw(false, true);
  }

  readColors();
  draw();
  onDrawn(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  $("#charts").addEventListener("keydown", press);
  $("#charts").addEventListener("focusout", ({ target }) => charts.get(target.id)?.u.setCursor(OUT, true, true));
  $("[data-all]").addEventListener("click", showAll);
})();
