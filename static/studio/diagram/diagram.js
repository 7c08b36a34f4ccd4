/* Light a part of the drawing and its lines together, and show what is chosen in the strip under the code. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  let lit = "", chosen = "";

  const nodeOf = (id) => id && document.getElementById(`n-${id}`);
  function linesOf(node) {
    const { first, last } = node.dataset, found = [];
    for (let n = Number(first); n <= Number(last) && found.length < 200; n++) {
      const line = document.getElementById(`L${n}`);
      if (line) found.push(line);
    }
    return found;
  }
  function mark(id, name) {
    for (const one of $$(`.${name}:is(.node, .code > li)`)) one.classList.remove(name);
    const node = nodeOf(id);
    if (node) for (const one of [node, ...linesOf(node)]) one.classList.add(name);
  }
  function tell() {
    const strip = $("#strip"), entry = document.getElementById(`i-${chosen}`);
    if (!strip || !entry || strip.innerHTML === entry.innerHTML) return;
    const at = $$("a", strip).indexOf(document.activeElement);
    strip.innerHTML = entry.innerHTML;
    $$("a", strip)[at]?.focus();
  }
  /* The item of an element: a part of the drawing, or the line that begins one. */
  function itemOf(target) {
    const node = target.closest?.(".node[data-item]");
    if (node) return node.dataset.item;
    const link = target.closest?.(".code > li")?.querySelector("a.n.item");
    return link ? link.hash.slice(3) : "";
  }
  function choose(id) {
    chosen = id;
    mark(id, "chosen");
    tell();
  }
  function near(element) {
    element?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  document.addEventListener("pointerover", ({ target }) => {
    const id = itemOf(target);
    if (id !== lit) mark((lit = id), "lit");
  });
  document.addEventListener("click", (event) => {
    const { target } = event, link = target.closest?.(".node[data-item], .code a.n.item");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const id = itemOf(target), node = nodeOf(id), hash = link.getAttribute("href");
    if (!hash.startsWith("#")) return; // its line is on another page
    event.preventDefault();
    history.replaceState(null, "", hash);
    choose(id);
    // As after following a link: the next press of Tab goes on from where it led to.
    const other = link.matches(".node") ? $("a.n", linesOf(node)[0]) : node;
    near(other);
    other?.focus({ preventScroll: true });
  });
  /* An update writes the classes of the drawing anew. */
  document.addEventListener("htmx:after:swap", () => {
    mark(lit, "lit");
    choose(chosen);
  });
  function fromAddress() {
    const { hash } = location, line = hash.startsWith("#L") && document.getElementById(hash.slice(1));
    if (line) choose(itemOf(line));
    else if (hash.startsWith("#n-")) choose(Studio.decoded(hash.slice(3)));
  }
  addEventListener("hashchange", fromAddress);
  document.addEventListener("DOMContentLoaded", fromAddress);
})();
