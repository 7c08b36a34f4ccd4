/* Fetch nested steps when somebody opens them, and again while they are open and the instance changes. */
(() => {
  "use strict";
  const { $, $$, isReconcile } = Studio;
  const INNER_MS = 1000;
  const asked = new Map(); // id → when it was last requested; Infinity: it is about to be
  const flying = new Set(), stale = new Set(); // an answer on its way may be out of date
  function renew(node) {
    const { id } = node, last = asked.get(id);
    if (last === Infinity) return;
    asked.set(id, Infinity);
    setTimeout(() => {
      asked.set(id, Date.now());
      const now = document.getElementById(id);
      if (flying.has(id)) stale.add(id);
      else if (now?.closest("details").open) now.dispatchEvent(new CustomEvent("studio:inner"));
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
    for (const node of $$("details[open] [data-inner]")) if (node.closest("details").open) renew(node);
  }
  document.addEventListener("toggle", ({ target }) => {
    if (target.open) for (const node of $$("[data-inner]", target)) if (node.closest("details") === target) renew(node);
  }, true);
  document.addEventListener("htmx:ws:after:message:incoming", renewOpen);
  document.addEventListener("htmx:after:request", ({ detail }) => {
    if (isReconcile(detail) && detail.ctx.response?.status === 200) renewOpen();
  });

  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    const own = $("details", target);
    if (own && target.matches("li.step")) own.open = true;
    target.scrollIntoView({ block: "center" });
  }
  addEventListener("hashchange", unfold);
  document.addEventListener("DOMContentLoaded", unfold);
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("a[href*='#s-']");
    if (link && link.pathname === location.pathname) setTimeout(unfold);
  });
})();
