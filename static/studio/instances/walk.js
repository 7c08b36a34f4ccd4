/* Walk through the instances of the list that one was opened from: ] leads to the next one and [ to the one before,
   each on the tab that is open. The list is kept for the browser's tab, as it was when a row of it was opened. */
(() => {
  "use strict";
  const { $$, isTyping } = Studio;
  const KEPT = "studio-walk";
  const STEPS = { "[": -1, "]": 1 };
  const pathOf = (link) => new URL(link.href).pathname;

  function keep({ target }) {
    const link = target.closest?.("td.id a");
    if (!link) return;
    const rows = $$("td.id a", link.closest("table")).map(pathOf);
    try { sessionStorage.setItem(KEPT, JSON.stringify(rows)); } catch { /* blocked: there is no list then */ }
  }
  function kept() {
    try { return JSON.parse(sessionStorage.getItem(KEPT)) ?? []; } catch { return []; }
  }
  function walk(key) {
    const step = STEPS[key];
    if (!step) return;
    const rows = kept(), at = rows.indexOf(location.pathname), next = rows[at + step];
    if (at < 0) Studio.note("Open an instance from a list, then [ and ] lead through that list.", "queued");
    else if (!next) Studio.note(`This is the ${step > 0 ? "last" : "first"} instance of the list.`, "queued");
    else {
      const tab = new URLSearchParams(location.search).get("tab");
      location.assign(next + (tab ? `?${new URLSearchParams({ tab })}` : ""));
    }
  }
  if (!Studio.firstKey) document.addEventListener("click", keep); // a list has this from the start
  else { // an instance, whose first key has loaded it
    document.addEventListener("keydown", (event) => isTyping(event) || walk(event.key));
    walk(Studio.firstKey);
  }
})();
