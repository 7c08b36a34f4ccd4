/* Keep times current; their moments come from the server, as attributes. */
(() => {
  "use strict";
  const { $, $$, onDrawn } = Studio;
  const skew = Date.parse($("meta[name=server-time]")?.content || "") - Date.now() || 0;
  const now = () => Date.now() + skew;
  const two = (n) => String(n).padStart(2, "0");

  function span(ms) {
    const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60);
    const h = Math.floor(m / 60), d = Math.floor(h / 24);
    if (d) return h % 24 ? `${d} d ${h % 24} h` : `${d} d`;
    if (h) return `${h} h ${two(m % 60)} m`;
    return m ? `${m} m ${two(s % 60)} s` : `${s} s`;
  }
  function ago(s) {
    if (s < 60) return s < 2 ? "just now" : `${s} s ago`;
    if (s < 3600) return `${Math.floor(s / 60)} min ago`;
    return s < 86400 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86400)} d ago`;
  }
  function left(s) {
    if (s <= 0) return "due";
    if (s < 3600) return s < 60 ? `in ${s} s` : `in ${Math.floor(s / 60)} min`;
    return `in ${span(s * 1000)}`;
  }
  // The zone that the person has chosen; undefined, as where the browser does not know it, is that of the browser.
  function chosen() {
    const timeZone = document.documentElement.dataset.zone || undefined;
    try {
      return Intl.DateTimeFormat("en", { timeZone }) && timeZone;
    } catch {
      return undefined;
    }
  }
  const timeZone = chosen();
  const fields = ["year", "month", "day", "hour", "minute", "second"].map((name) => [name, "numeric"]);
  const there = Intl.DateTimeFormat("en", { timeZone, hourCycle: "h23", ...Object.fromEntries(fields) });
  // How far the clocks of the zone are ahead of UTC at a moment, in ms.
  function offset(t) {
    if (!timeZone) return -60000 * t.getTimezoneOffset();
    const part = Object.fromEntries(there.formatToParts(t).map(({ type, value }) => [type, Number(value)]));
    const wall = Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second);
    return wall - 1000 * Math.floor(t / 1000);
  }
  // A date whose UTC fields are what the clocks of the zone show.
  const wall = (t) => new Date(+t + offset(t));
  const day = (t) => wall(t).toISOString().slice(0, 10);
  const clock = (t) => wall(t).toISOString().slice(11, 19);
  Object.assign(Studio, { clock, offset, timeZone, wall });
  const TEXT = {
    until: (t) => (t - now() > 0 ? `in ${span(t - now() + 999)}` : "due"),
    left: (t) => left(Math.floor((t - now() + 999) / 1000)),
    since: (t) => span(now() - t),
    ago: (t) => ago(Math.max(0, Math.floor((now() - t) / 1000))),
    clock: (t) => clock(t),
    minute: (t) => (Math.abs(t - now()) < 864e5 ? "" : `${day(t)} `) + clock(t).slice(0, 5),
    moment: (t) => (day(t) === day(new Date(now())) ? clock(t) : `${day(t)} ${clock(t).slice(0, 5)}`),
  };
  const whole = (t) => `${day(t)} ${clock(t)}`;
  const exact = (t) => `${whole(t)}.${String(t.getMilliseconds()).padStart(3, "0")}`;
  // In the person's zone, and in UTC.
  const named = (here, utc) => `${here} ${zone.value}${zone.value === "UTC" ? "" : ` · ${utc}`}`;
  const stretch = ([from, to]) =>
    named(`${exact(from)} to ${exact(to)}`, `${from.toISOString()} to ${to.toISOString()}`);
  function tick(root = document) {
    const present = `${clock(new Date(now())).slice(0, 5)} ${zone.value}`;
    for (const node of $$(".zone", root)) if (node.textContent !== present) node.textContent = present;
    for (const node of $$("time[data-from]", root)) {
      const title = stretch([node.dataset.from, node.dataset.to].map((text) => new Date(text)));
      if (node.title !== title) node.title = title;
    }
    for (const node of $$("time[data-kind]", root)) {
      const at = new Date(node.dateTime), text = TEXT[node.dataset.kind]?.(at);
      if (!text || isNaN(at)) continue;
      const title = named(whole(at), at.toISOString());
      if (node.textContent !== text) node.textContent = text;
      if (node.title !== title) node.title = title;
    }
  }
  let isPrinting = false;
  setInterval(() => document.hidden || isPrinting || tick(), 1000);
  // On paper "3 min ago" soon means nothing; how long something took still does.
  addEventListener("beforeprint", () => {
    isPrinting = true;
    for (const node of $$("time[data-kind]:not([data-kind=since])")) node.textContent = whole(new Date(node.dateTime));
  });
  addEventListener("afterprint", () => {
    isPrinting = false;
    tick();
  });
  const parts = Intl.DateTimeFormat(undefined, { timeZone, timeZoneName: "short" }).formatToParts();
  const zone = (Studio.zone = parts.find((part) => part.type === "timeZoneName"));
  tick(); // before the page is shown
  document.addEventListener("htmx:before:swap", ({ detail }) => {
    for (const { fragment } of detail.tasks) if (fragment) tick(fragment);
  });
  onDrawn(tick);
})();
