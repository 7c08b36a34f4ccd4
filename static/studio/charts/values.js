/* How the values of charts and their times are written. Times are in the person's zone, as everywhere. */
(() => {
  "use strict";
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const DAY_S = 86400;
  const two = (n) => String(n).padStart(2, "0");
  const clock = (t) => Studio.clock(t).slice(0, 5);
  const dayOf = (t) => `${t.getUTCDate()} ${MONTHS[t.getUTCMonth()]}`;
  const date = (t) => dayOf(Studio.wall(t));
  const isSameDay = (one, other) => dayOf(Studio.wall(one)) === dayOf(Studio.wall(other));

  // As the table beside the chart has it, which the server has written: 850 ms, 4.2 s, 2 m 04 s; never rounded up.
  function duration(seconds) {
    const micros = Math.round(seconds * 1e6), s = Math.floor(micros / 1e6), m = Math.floor(s / 60);
    const h = Math.floor(m / 60), d = Math.floor(h / 24), tenths = Math.floor(micros / 1e5) % 10;
    if (micros < 1000) return micros ? "<1 ms" : "0 s";
    if (s < 1) return `${Math.floor(micros / 1000)} ms`;
    if (s < 10) return tenths ? `${s}.${tenths} s` : `${s} s`;
    if (m < 1) return `${s} s`;
    if (h < 1) return `${m} m ${two(s % 60)} s`;
    if (d < 1) return `${h} h ${two(m % 60)} m`;
    return h % 24 ? `${d} d ${h % 24} h` : `${d} d`;
  }
  const count = (n) => n.toLocaleString("en");
  const few = (n) => n < 10000 ? count(n) : n.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });

  // Along an axis all have one unit.
  function durationsOf(ticks) {
    const last = ticks.at(-1);
    const [unit, size] = last < 1 ? ["ms", 0.001] : last < 120 ? ["s", 1] : last < 7200 ? ["min", 60]
      : last < 2 * DAY_S ? ["h", 3600] : ["d", DAY_S];
    return ticks.map((s) => s === 0 ? "0" : `${count(Number((s / size).toPrecision(3)))} ${unit}`);
  }
  function timesOf(ticks, apart) {
    return ticks.map((s, at) => {
      const t = new Date(s * 1000);
      if (apart >= DAY_S) return date(t);
      const isNew = at === 0 || !isSameDay(t, new Date(ticks[at - 1] * 1000));
      const isToday = isSameDay(t, new Date()) && isSameDay(new Date(ticks[0] * 1000), t);
      return isNew && !isToday ? `${clock(t)}\n${date(t)}` : clock(t);
    });
  }
  // The span of a value, from a second on: "14:05", "27 Nov 14:00 to 16:00".
  function span(from, step) {
    const began = new Date(from * 1000), ended = new Date((from + step) * 1000);
    if (step >= DAY_S) return `${dayOf(began)} (UTC)`;
    const day = isSameDay(began, new Date()) ? "" : `${date(began)} `;
    return step <= 60 ? `${day}${clock(began)}` : `${day}${clock(began)} to ${clock(ended)}`;
  }
  Studio.values = { duration, count, few, durationsOf, timesOf, span };
})();
