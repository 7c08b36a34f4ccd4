/* Light a part of the drawing and its lines together, and show what is chosen in the strip under the code. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  let lit = "", chosen = "";

  const nodeOf = (id) => id && document.getElementById(`n-${id}`);
  function linesOf(node) {
    const first = Number(node.getAttribute("href").split("#L")[1]), found = [];
    for (let n = first; n <= (node.dataset.last ?? first) && found.length < 200; n++) {
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
  function made(name, textContent, href) {
    const element = Object.assign(document.createElement(name), { textContent });
    if (href) element.setAttribute("href", href);
    return element;
  }
  /* Its line, what it is and has done, and its steps, to which its line leads as well. */
  function tell() {
    const strip = $("#strip"), node = nodeOf(chosen);
    if (!strip || !node) return;
    const href = node.getAttribute("href"), line = href.split("#L")[1];
    const steps = $$(`#f-${line} [data-of="${chosen}"] a`).map((link, nth) =>
      made("a", nth ? link.textContent : "Open step", link.getAttribute("href")));
    const drawn = made("p", "");
    drawn.append(made("a", `line ${line}`, href), made("span", $("title", node).textContent), ...steps);
    if (strip.innerHTML === drawn.innerHTML) return;
    const at = $$("a", strip).indexOf(document.activeElement);
    strip.replaceChildren(...drawn.childNodes);
    $$("a", strip)[at]?.focus();
  }
  /* The item of an element: a part of the drawing, or the line that begins one. */
  function itemOf(target) {
    const node = target.closest?.("a.node");
    if (node) return node.id.slice(2);
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
    const { target } = event, link = target.closest?.("a.node, .code a.n.item");
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
