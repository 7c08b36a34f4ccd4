/* Links to a week name the time zone: the server does not know that of the browser. */
(() => {
  "use strict";
  const { $, $$, onDrawn } = Studio;
  const own = Studio.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  onDrawn(() => {
    for (const link of $$("a[data-own-zone]")) {
      const there = new URL(link.href), shown = link.dataset.ownZone;
      if (!own || own === shown) continue;
      there.searchParams.set("zone", own);
      link.href = there.href;
      if (!shown) continue;
      $("span", link).textContent = own;
      link.hidden = false;
    }
  });
})();
