/* The numbers of saved views: they follow the page, and are asked for again after changes, at most every 15 s. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const SOONEST_MS = 15000, LATEST_MS = 60000;
  let askedAt = Date.now(), hasNews = false;
  // A message of the socket, except the answer to a beat, says that something has changed.
  document.addEventListener("htmx:ws:before:message:incoming", ({ detail }) => {
    hasNews ||= detail.message.data !== "beat";
  });
  setInterval(() => {
    const live = document.body.dataset.live, waited = Date.now() - askedAt;
    if (document.hidden || live === "out" || live === "offline" || waited < (hasNews ? SOONEST_MS : LATEST_MS)) return;
    [askedAt, hasNews] = [Date.now(), false];
    $("#view-counts")?.dispatchEvent(new CustomEvent("studio:views"));
  }, 1000);
  // On a narrow screen what is chosen may be outside of what is shown of the tabs and of the statuses.
  addEventListener("DOMContentLoaded", () => {
    for (const row of $$("#views, #strip")) {
      const open = $("[aria-current]", row);
      if (open) row.scrollLeft = open.offsetLeft - row.offsetLeft - (row.clientWidth - open.offsetWidth) / 2;
    }
  });
})();
