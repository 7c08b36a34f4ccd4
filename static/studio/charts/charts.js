/* The tables begin closed, and what draws the charts is loaded once the page is there: they have their room. */
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  const root = Studio.$("#charts");
  for (const numbers of Studio.$$(".numbers", root)) numbers.open = false;
  root.classList.add("ready");
  for (const src of root.dataset.scripts.split(/\s+/)) {
    const script = document.createElement("script");
    document.head.append(Object.assign(script, { src, async: false })); // one after the other
  }
});
