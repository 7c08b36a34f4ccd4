/* What the other scripts share. The pages read and submit without any of them. */
(() => {
  "use strict";
  const $ = (selector, root = document) => selector && root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  // Do it on the page as it was loaded, and again after each swap.
  function onDrawn(act) {
    for (const name of ["DOMContentLoaded", "htmx:after:swap"]) document.addEventListener(name, () => act());
  }
  // Whether a request asks for what the socket may have missed.
  const isReconcile = (detail) => detail?.ctx?.sourceElement?.id === "reconcile";
  window.Studio = { $, $$, onDrawn, isReconcile };
})();
