/* Forget a secret that is shown once when its page is left: the browser may keep the page to come back to. */
(() => {
  "use strict";
  addEventListener("pagehide", () => Studio.$("[data-once]")?.remove());
})();
