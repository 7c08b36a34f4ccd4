/* What the other scripts share. Pages and forms work without any of them. */
(() => {
  "use strict";
  const $ = (selector, root = document) => selector && root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  // Run it when the page has loaded, and again after each swap.
  function onDrawn(act) {
    const moments = ["DOMContentLoaded", "htmx:after:swap", "studio:drawn"];
    for (const name of moments) document.addEventListener(name, () => act());
  }
  // Whether this is the request that polls for what the socket may have missed.
  const isReconcile = (detail) => detail?.ctx?.sourceElement?.id === "reconcile";
  // Whether a key belongs to a field or a dialog, or to the browser.
  const TYPING = "input:not([type=checkbox]), textarea, select, [contenteditable=true]";
  function isTyping(event) {
    const within = event.composedPath()[0].closest?.(TYPING);
    return Boolean(event.ctrlKey || event.metaKey || event.altKey || within || $("dialog[open]"));
  }
  // A part of an address in words; as it is, if it is not encoded.
  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }
  window.Studio = { $, $$, decoded, onDrawn, isReconcile, isTyping };
})();
