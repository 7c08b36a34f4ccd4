/* A screen that nobody touches: its clock, what is no longer live, and how it comes back by itself. */
(() => {
  "use strict";
  const { $, $$, clock, zone } = Studio;
  const SILENT_MS = 10000, ASK_MS = 30000;
  let heard = Date.now(), since = 0, asked = 0;
  document.addEventListener("htmx:ws:before:message:incoming", () => (heard = Date.now()));

  function look() {
    const live = document.body.dataset.live, now = Date.now(), time = $("#tv-clock"), bar = $("#tv-stale");
    const text = `${clock(new Date()).slice(0, 5)} ${zone.value}`;
    if (time.textContent !== text) time.textContent = text;
    const isStale = live === "offline" || live === "out" || now - heard > SILENT_MS;
    if (!isStale) {
      if (since) renew();
      since = asked = 0;
    } else {
      since ||= heard;
      asked ||= now;
      const words = live === "out" ? "Signed out" : `Not live since ${clock(new Date(since)).slice(0, 5)}`;
      if ($("strong", bar).textContent !== words) $("strong", bar).textContent = words;
      if (now - asked > ASK_MS) comeBack(now, live);
    }
    $("#tv-sign-in").hidden = live !== "out";
    bar.hidden = !isStale;
  }

  // The page as it is now, unless the server is away or wants a sign-in.
  async function fresh() {
    const answer = await fetch(location.href, { cache: "no-store" }).catch(() => null);
    if (!answer?.ok || answer.redirected) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }
  const files = (page) => $$("script[src], link[rel=stylesheet]", page)
    .map((one) => one.getAttribute("src") ?? one.getAttribute("href")).join();
  // After a release, the page has other scripts and styles.
  async function renew() {
    const page = await fresh();
    if (page && files(page) !== files(document)) location.reload();
  }
  async function comeBack(now, live) {
    asked = now;
    const page = await fresh();
    if (!page) return;
    if (live === "out" || files(page) !== files(document)) location.reload();
    else Studio.reconnect();
  }

  addEventListener("DOMContentLoaded", () => {
    new MutationObserver(look).observe(document.body, { attributes: true, attributeFilter: ["data-live"] });
    setInterval(look, 1000);
    look();
  });
})();
