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
  const clock = (Studio.clock = (t) => `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`);
  const day = (t) => `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`;
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
  // In the zone of the browser, and in UTC.
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
  const parts = Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts();
  const zone = parts.find((part) => part.type === "timeZoneName");
  tick(); // before the page is shown
  document.addEventListener("htmx:before:swap", ({ detail }) => {
    for (const { fragment } of detail.tasks) if (fragment) tick(fragment);
  });
  onDrawn(tick);
})();
