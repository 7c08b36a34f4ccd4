/* The numbers of saved views: they follow the page, and are asked for again after changes, at most every 15 s. */
(() => {
  "use strict";
  const { $ } = Studio;
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
  // On a narrow screen the open view may be outside of what is shown of the tabs.
  addEventListener("DOMContentLoaded", () => {
    const tabs = $("#views"), open = $("#views [aria-current]");
    if (open) tabs.scrollLeft = open.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - open.offsetWidth) / 2;
  });
})();
