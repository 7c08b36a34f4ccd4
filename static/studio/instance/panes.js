/* The pane of a row: a press and Enter open it, Escape closes it; for other keys see pane-keys.js. The address names
   it: #s-charge-2, and #s-charge-2-a3 for an attempt. Without a script, the rows are links. */
(() => {
  "use strict";
  const { $, $$, isTyping, onDrawn } = Studio;
  const table = $("#lanes");
  if (!table) return;
  const rows = () => $$("tr.row:not([hidden])", table);
  const paneOf = (row) => row.nextElementSibling;
  const open = () => rows().find((row) => paneOf(row).hasChildNodes());
  const linkOf = (row) => $("a.open", row);
  const stepOf = (row) => row.id.replace(/^s-/, "");
  const nameOf = (row) => new URLSearchParams(linkOf(row).search).get("step");
  let wanted = "";

  function mark() {
    for (const row of rows()) linkOf(row).setAttribute("aria-expanded", String(paneOf(row).hasChildNodes()));
  }
  function remember(hash) {
    const url = new URL(location.href);
    for (const name of ["step", "open"]) url.searchParams.delete(name);
    url.hash = encodeURIComponent(hash);
    history.replaceState(history.state, "", url);
  }
  function close() {
    wanted = "";
    table.classList.remove("beside-only");
    for (const row of rows()) paneOf(row).replaceChildren();
    mark();
  }
  async function show(row, hash = `s-${nameOf(row)}`) {
    const step = stepOf(row);
    wanted = step;
    // Steps inside it that are rows of the page are not listed in the pane, too: each ID is there once.
    const rowsOf = $(".kids[aria-expanded=true]", row) ? `rows=${step}` : "";
    const query = `${table.dataset.query}${rowsOf}`;
    const headers = { "HX-Request": "true" };
    const answer = await fetch(`${table.dataset.panes}${step}/pane/?${query}`, { headers }).catch(() => null);
    const html = answer?.ok ? await answer.text().catch(() => "") : "";
    const now = document.getElementById(row.id);
    if (wanted !== step || !html || !now) return;
    const drawn = document.createElement("template");
    drawn.innerHTML = `<table><tbody><tr>${html}</tr></tbody></table>`;
    close();
    paneOf(now).append(...$("tr", drawn.content).childNodes);
    htmx.process(paneOf(now));
    mark();
    remember(hash);
    document.dispatchEvent(new CustomEvent("studio:drawn"));
    reveal(hash);
  }
  function reveal(hash) {
    const attempt = /-a(\d+)$/.exec(hash)?.[1], row = open();
    const place = attempt && row && document.getElementById(`s-${stepOf(row)}-a${attempt}`);
    if (!place) return;
    for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    place.scrollIntoView({ block: "nearest" });
  }

  function named(hash) {
    const name = hash.replace(/^s-/, ""), whole = name.replace(/-a\d+$/, "");
    for (const text of [name, whole])
      for (const row of rows()) if (stepOf(row) === text || nameOf(row) === text) return row;
    return null;
  }
  // An address that names a row which this page does not have is answered by the server.
  function follow() {
    const hash = Studio.decoded(location.hash.slice(1));
    const isInPane = document.getElementById(hash)?.closest(".step-pane");
    if (isInPane || !/^(s-.|start$|result$)/.test(hash)) return reveal(hash);
    const row = named(hash), url = new URL(location.href);
    if (row && row === open()) reveal(hash);
    else if (row) show(row, hash);
    else {
      const step = hash.replace(/^s-/, "").replace(/-a\d+$/, "");
      if (url.searchParams.get("step") === step) return;
      url.searchParams.set("step", step);
      location.replace(url);
    }
  }

  table.addEventListener("click", (event) => {
    const closing = event.target.closest(".step-pane .close"), row = event.target.closest("tr.row");
    if (event.ctrlKey || event.metaKey || event.shiftKey || (!closing && !row)) return;
    const link = event.target.closest("a, button");
    if (row && ((link && !link.matches(".open")) || String(getSelection()))) return;
    event.preventDefault();
    const was = open();
    if (closing || row === was) {
      close();
      remember("");
      linkOf(was).focus({ preventScroll: true });
    } else show(row);
  });

  document.addEventListener("keydown", (event) => {
    if (isTyping(event) || event.defaultPrevented || Studio.isAfterG()) return;
    const { key } = event, row = open();
    if (key === "Enter" && event.target.matches("a.open") && row?.contains(event.target)) $("#pane").focus();
    else if (key === "Escape" && row && !$("details.menu[open]")) {
      if ($("#pane").contains(document.activeElement)) linkOf(row).focus();
      else {
        close();
        remember("");
      }
    } else return;
    if (key === "Escape") return; // it also hides what else is open
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  if (table.matches(".beside-only") && matchMedia("(max-width: 1283px)").matches) close();
  addEventListener("hashchange", follow);
  document.addEventListener("DOMContentLoaded", follow);
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("a[href*='#s-']");
    if (link && link.pathname === location.pathname && link.hash === location.hash) setTimeout(follow);
  });
  onDrawn(mark);
  Studio.panes = { rows, open, linkOf, show };
})();
