/* How a chart looks: uPlot's options, and what is drawn over its lines so that they differ without color. */
(() => {
  "use strict";
  const { few, durationsOf, timesOf } = Studio.values;
  const HEIGHT = 200, LABELS = 48, WIDE = 460; // px; labels at the ends of lines need a wide chart
  const LEAST = { count: 8, seconds: 0.01 }; // at the top of the axis, so that little does not look like much
  const SHAPE = 3, APART = 26; // px: half a shape, and from one to the next
  const COUNTS = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();
  const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200,
    1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 432000, 864000, 2592000];
  const LINES = { started: [], p50: [], p95: [5, 3] }; // the dashes of those that are lines; the others are bars
  const ON_TOP = ["terminated", "errored", "complete", "retries", "started", "p95", "p50"]; // drawn in this order

  // What CSS says of a color, also where it depends on the theme.
  const probe = document.createElement("i");
  probe.hidden = true;
  function color(name) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }
  const NAMES = {
    complete: "line-strong", errored: "errored-bar", terminated: "terminated-bar", retries: "retrying-bar",
    started: "accent", p50: "running-bar", p95: "text", axis: "muted", grid: "line", surface: "surface",
  };
  let colors = {};
  function readColors() {
    colors = Object.fromEntries(Object.entries(NAMES).map(([look, name]) => [look, color(name)]));
    colors.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  }

  // Errored is striped, terminated dotted: bars that stand on each other differ in more than color.
  function pattern(u, look) {
    const size = 6 * devicePixelRatio, tile = new OffscreenCanvas(size, size), pen = tile.getContext("2d");
    pen.fillStyle = pen.strokeStyle = colors[look];
    pen.lineWidth = size / 2.4;
    if (look === "errored") {
      pen.beginPath();
      for (const from of [-size, 0, size]) {
        pen.moveTo(from - 1, size + 1);
        pen.lineTo(from + size + 1, -1);
      }
      pen.stroke();
    } else pen.fillRect(0, 0, size / 2, size / 2);
    return u.ctx.createPattern(tile, "repeat");
  }
  const isLine = (look) => look in LINES;
  const isStriped = (look) => look === "errored" || look === "terminated";

  function seriesOf(look) {
    const drawn = { scale: "y", stroke: () => colors[look], points: { show: false } };
    if (isLine(look)) return { ...drawn, width: look === "started" ? 1.25 : 1.75, dash: LINES[look] };
    const fill = (u) => isStriped(look) ? pattern(u, look) : colors[look];
    return { ...drawn, width: 0, fill, paths: uPlot.paths.bars({ size: [0.74, 32] }) };
  }
  function shape(pen, look, x, y, half) {
    pen.beginPath();
    if (look === "p95") {
      pen.moveTo(x, y - half * 1.3);
      for (const [right, down] of [[1.3, 0], [0, 1.3], [-1.3, 0]]) pen.lineTo(x + right * half, y + down * half);
    } else pen.arc(x, y, half, 0, 7);
    pen.closePath();
    pen.fill();
    pen.stroke();
  }
  // A shape on each value that stands alone, and on others as far as there is room.
  function shapes(u, looks) {
    const { ctx: pen, data } = u, ratio = devicePixelRatio;
    const px = (u.valToPos(u.data[0][1], "x") - u.valToPos(u.data[0][0], "x")) || APART;
    const every = Math.max(1, Math.ceil(APART / px));
    const { left, top, width, height } = u.bbox;
    pen.save();
    pen.beginPath();
    pen.rect(left - 5 * ratio, top - 5 * ratio, width + 10 * ratio, height + 10 * ratio);
    pen.clip();
    looks.forEach((look, at) => {
      if (!isLine(look) || look === "started") return; // the only line among bars
      const values = data[at + 1];
      [pen.fillStyle, pen.strokeStyle, pen.lineWidth] = [colors.surface, colors[look], 1.5 * ratio];
      values.forEach((value, i) => {
        if (value === null) return;
        const isAlone = (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null;
        if (!isAlone && (values.length - 1 - i) % every) return;
        shape(pen, look, u.valToPos(data[0][i], "x", true), u.valToPos(value, "y", true), SHAPE * ratio);
      });
    });
    pen.restore();
  }
  // The name of a line at its end. Names that would cover each other move apart.
  function labels(u, looks, words) {
    if (u.width < WIDE) return;
    const ratio = devicePixelRatio, pen = u.ctx, apart = 13 * ratio;
    const { left, top, width, height } = u.bbox;
    const ends = looks.map((look, at) => {
      const last = u.data[at + 1].findLast((value) => value !== null);
      return isLine(look) && last !== undefined && { look, word: words[at], y: u.valToPos(last, "y", true) };
    }).filter(Boolean).sort((one, other) => other.y - one.y);
    let lowest = top + height;
    pen.save();
    [pen.font, pen.textAlign, pen.textBaseline] = [colors.font.replace("11", 11 * ratio), "left", "middle"];
    for (const end of ends) {
      end.y = lowest = Math.min(Math.max(end.y, top), lowest);
      lowest -= apart;
      pen.fillStyle = colors[end.look];
      pen.fillText(end.word, left + width + 8 * ratio, end.y);
    }
    pen.restore();
  }

  function axesOf(kind) {
    const stroke = () => colors.axis, grid = { stroke: () => colors.grid, width: 1 };
    const plain = { stroke, font: colors.font, ticks: { ...grid, size: 4 } };
    return [
      {
        ...plain, grid: { show: false }, space: 64,
        size: (u, texts) => texts?.some((text) => text.includes("\n")) ? 38 : 26,
        values: (u, ticks, i, space, apart) => timesOf(ticks, apart),
      },
      {
        ...plain, grid, ticks: { show: false }, size: 54, space: 36,
        incrs: kind === "count" ? COUNTS : SECONDS,
        values: (u, ticks) => kind === "count" ? ticks.map(few) : durationsOf(ticks),
      },
    ];
  }
  // Bars stand on those that are drawn after them.
  function stacked(looks, values) {
    const sums = values.map((line) => [...line]);
    for (let at = looks.length - 1; at >= 0; at--) {
      if (isLine(looks[at])) continue;
      for (let above = 0; above < at; above++) {
        if (!isLine(looks[above])) sums[at].forEach((n, i) => { sums[above][i] += values[at][i]; });
      }
    }
    return sums;
  }
  // The order of drawing: bars from the highest sum on, lines over them.
  function ordered(lines) {
    return lines.map((line, at) => ({ ...line, at })).sort((a, b) => ON_TOP.indexOf(a.look) - ON_TOP.indexOf(b.look));
  }

  // Ticks of time begin with the days of the zone.
  const { timeZone } = Studio;
  const tzDate = timeZone && ((s) => uPlot.tzDate(new Date(s * 1000), timeZone));

  function options(chart, width) {
    const looks = chart.lines.map(({ look }) => look), words = chart.lines.map(({ word }) => word);
    const ends = () => [chart.from, chart.from + chart.step * chart.count];
    const isAll = (min, max) => min <= chart.from + chart.step && max >= ends()[1] - chart.step;
    return {
      width, height: HEIGHT, tzDate,
      padding: [10, width < WIDE ? 20 : LABELS, 0, 0], // of all: times are below each other
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, dist: 6 }, sync: { key: "charts" } },
      scales: {
        x: { time: true, range: (u, min, max) => isAll(min, max) ? ends() : [min, max] },
        y: { range: (u, min, max) => [0, Math.max(LEAST[chart.kind], (max ?? 0) * 1.08)] },
      },
      axes: axesOf(chart.kind),
      series: [{}, ...looks.map(seriesOf)],
      hooks: { draw: [(u) => shapes(u, looks), (u) => labels(u, looks, words)] },
    };
  }
  Studio.drawing = { options, ordered, readColors, stacked, HEIGHT };
})();
