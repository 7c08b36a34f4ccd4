/* Fetch a pane and nested steps again while they are open and the instance changes; nested steps also when somebody
   opens them. */
(() => {
  "use strict";
  const { $, $$, isReconcile } = Studio;
  const INNER_MS = 1000;
  const asked = new Map(); // id → when it was last requested; Infinity: it is about to be
  const flying = new Set(), stale = new Set(); // an answer on its way may be out of date
  const isOpen = (node) => Boolean(node) && node.closest("details")?.open !== false;
  function renew(node) {
    const { id } = node, last = asked.get(id);
    if (last === Infinity) return;
    asked.set(id, Infinity);
    setTimeout(() => {
      asked.set(id, Date.now());
      const now = document.getElementById(id);
      if (flying.has(id)) stale.add(id);
      else if (isOpen(now)) now.dispatchEvent(new CustomEvent("studio:inner"));
    }, Math.max(0, (last ?? 0) + INNER_MS - Date.now()));
  }
  const foldOf = ({ detail }) => detail?.ctx?.sourceElement?.closest?.("[data-inner]")?.id;
  document.addEventListener("htmx:before:request", (event) => {
    const id = foldOf(event);
    if (id) flying.add(id);
  });
  document.addEventListener("htmx:finally:request", (event) => {
    const id = foldOf(event), node = id && document.getElementById(id);
    flying.delete(id);
    if (node && stale.delete(id)) renew(node);
  });
  function renewOpen() {
    for (const node of $$("[data-inner]")) if (isOpen(node)) renew(node);
  }
  document.addEventListener("toggle", ({ target }) => {
    if (target.open) for (const node of $$("[data-inner]", target)) if (node.closest("details") === target) renew(node);
  }, true);
  document.addEventListener("htmx:ws:after:message:incoming", renewOpen);
  // What is inside the step of a pane is fetched as soon as the pane is there.
  for (const name of ["DOMContentLoaded", "studio:drawn"])
    document.addEventListener(name, () => {
      for (const node of $$("#pane [data-inner]")) if (isOpen(node)) renew(node);
    });
  document.addEventListener("htmx:after:request", ({ detail }) => {
    if (isReconcile(detail) && detail.ctx.response?.status === 200) renewOpen();
  });
})();
