/* Tick instances in the list: by clicks, with Shift for a range, and by keys. Ticks belong to a search: they stay while
   its pages are turned and its rows are updated, and end with the tab. Without this, the boxes are those of a form. */
(() => {
  "use strict";
  const { $, $$, onDrawn } = Studio;
  const form = $("#ticks");
  if (!form) return;
  const KEPT = "studio-ticks", { search } = form.dataset;
  const whole = form.elements.q, number = $(".number", form), all = $("[data-all]", form);
  const boxes = () => $$("#list input[name=key]");
  let keys = new Set(), isAll = false, last = ""; // the box from which a range begins

  function read() {
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(KEPT)); } catch { /* blocked, or not ours */ }
    const isOurs = kept?.search === search;
    keys = new Set(isOurs ? kept.keys : []);
    isAll = Boolean(isOurs && kept.isAll && whole);
  }
  function write() {
    const kept = keys.size || isAll ? JSON.stringify({ search, isAll, keys: [...keys] }) : null;
    try {
      if (kept) sessionStorage.setItem(KEPT, kept);
      else sessionStorage.removeItem(KEPT);
    } catch { /* blocked: ticks end with the page */ }
  }
  function draw() {
    const shown = boxes(), total = $("#strip")?.dataset.total ?? "";
    for (const box of shown) {
      box.checked = isAll || keys.has(box.value);
      box.closest("tr").classList.toggle("ticked", box.checked);
    }
    const here = shown.filter((box) => box.checked).length, away = isAll ? 0 : keys.size - here;
    const page = $("#list [data-page]");
    if (page) {
      page.checked = here > 0 && here === shown.length;
      page.indeterminate = here > 0 && !page.checked;
    }
    form.classList.toggle("shown", isAll || keys.size > 0);
    form.elements.keys.value = isAll ? "" : [...keys].join(",");
    if (whole) whole.checked = isAll;
    const text = isAll ? `All ${total} that match`.replace("  ", " ")
      : `${keys.size} selected${away ? ` · ${away} on other pages` : ""}`;
    if (number.textContent !== text) number.textContent = text;
    if (all) {
      all.hidden = isAll;
      $("[data-count]", all).textContent = total;
    }
  }
  function change(act) {
    act();
    write();
    draw();
  }
  function set(box, isOn) {
    if (isAll) { // all but this one: what is not on the page cannot be kept
      isAll = false;
      for (const one of boxes()) keys.add(one.value);
    }
    if (isOn) keys.add(box.value);
    else keys.delete(box.value);
  }
  function tick(box, isOn, isRange) {
    const shown = boxes(), from = shown.findIndex((one) => one.value === last), to = shown.indexOf(box);
    const range = isRange && from >= 0 ? shown.slice(Math.min(from, to), Math.max(from, to) + 1) : [box];
    change(() => { for (const one of range) set(one, isOn); });
    last = box.value;
  }
  const clear = () => change(() => { keys.clear(); isAll = false; });
  const select = (isOn) => change(() => { for (const box of boxes()) set(box, isOn); });
  const selectAll = () => (whole ? change(() => { keys.clear(); isAll = true; }) : select(true));

  document.addEventListener("click", (event) => {
    const { target } = event;
    if (target.matches("#list input[name=key]")) tick(target, target.checked, event.shiftKey);
    else if (target.matches("#list [data-page]")) select(target.checked);
    else if (target.closest("#ticks [data-all]")) selectAll();
    else if (target.closest("#ticks [data-clear]")) clear();
  });
  // Shift and a click would mark text.
  document.addEventListener("mousedown", (event) => {
    if (event.shiftKey && event.target.closest("#list .pick")) event.preventDefault();
  });
  const press = (action) => form.classList.contains("shown") && $(`[value=${action}]:enabled`, form)?.click();
  document.addEventListener("keydown", (event) => {
    const typing = event.composedPath()[0].closest?.("input:not([type=checkbox]), textarea, select");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || $("dialog[open]")) return;
    const key = event.shiftKey ? event.key.toLowerCase() : event.key, box = $("#list tr.selected input[name=key]");
    if (key === "x" && box) tick(box, event.shiftKey || !box.checked, event.shiftKey);
    else if (key === "a") selectAll();
    else if (key === "y") press("retry");
    else if (key === "p") press("pause");
    else if (event.code === "Escape") clear();
  });
  addEventListener("pageshow", () => { read(); draw(); });
  onDrawn(draw);
  read();
})();
