/* The server does not know the time zone of the browser: links to a week name it. */
(() => {
  "use strict";
  const { $, $$, onDrawn } = Studio;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
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
