/* Rows and buttons stay where they are. A row that arrives waits until somebody asks for it, and one that has left is
   dimmed until then. A new button is the last; one that is gone leaves its place free. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const waiting = new Map(); // id of a part of the page → what the server has drawn of it
  const rowsOf = (root) => $$("[data-rows] > [id]", root);

  // A row is as high as it was, also with less to say.
  function lock(row) {
    const { height } = row.getBoundingClientRect();
    row.style[getComputedStyle(row).display === "table-row" ? "height" : "minHeight"] = `${height}px`;
  }
  addEventListener("resize", () => {
    for (const row of rowsOf(document)) row.style.height = row.style.minHeight = "";
  });

  function inPlaceOf(row, fresh) {
    if (!fresh) {
      const left = row.cloneNode(true);
      left.classList.add("gone");
      return left;
    }
    for (const place of ["leading", "follows"]) fresh.classList.toggle(place, row.classList.contains(place));
    return fresh;
  }
  // Draw the rows that are there in their order; return whether that differs from what the server has drawn.
  function keepOrder(list, drawn) {
    const now = [...list.children], fresh = [...drawn.children];
    if (now.map((row) => row.id).join() === fresh.map((row) => row.id).join()) return false;
    drawn.replaceChildren(...now.map((row) => inPlaceOf(row, fresh.find(({ id }) => id === row.id))));
    return true;
  }
  function keepPlaces(buttons, drawn) {
    const fresh = [...drawn.children], now = [...buttons.children];
    const places = now.map((button) => inPlaceOf(button, fresh.find(({ id }) => id === button.id)));
    while (places.at(-1)?.classList.contains("gone")) places.pop();
    drawn.replaceChildren(...places, ...fresh.filter(({ id }) => !now.some((button) => button.id === id)));
  }
  // What stands beside it does not move.
  function isAboveSomething(part) {
    const top = part.nextElementSibling?.getBoundingClientRect().top;
    return top < innerHeight && top >= part.getBoundingClientRect().bottom;
  }

  function hold(tasks, task) {
    const { target, fragment } = task;
    const now = rowsOf(target), fresh = rowsOf(fragment);
    if (document.hidden || !target.id || !(now.length || fresh.length)) return;
    now.forEach(lock);
    const drawn = fragment.cloneNode(true);
    waiting.delete(target.id);
    if (now.length && fresh.length) {
      const differs = $$("[data-rows]", target).map((list) => {
        const same = $(`#${list.id}`, fragment);
        return same && keepOrder(list, same);
      });
      if (!differs.some(Boolean)) return;
    } else if (now.length || isAboveSomething(target)) { // appears, or is gone
      tasks.splice(tasks.indexOf(task), 1);
      for (const row of now) row.classList.add("gone");
    } else return;
    waiting.set(target.id, drawn);
  }
  // A sentence that is written anew is another one: its words do not move from where they were in the last.
  const SAID = ":is(.home-head h1, .workers-head h1, .facts-line, .group .line, .why):not(:hover, :focus-within)";
  function renew(said) {
    const copy = said.cloneNode(true);
    said.replaceWith(copy);
    return copy;
  }
  document.addEventListener("htmx:before:swap", ({ detail: { tasks } }) => {
    for (const task of [...tasks].filter(({ target, fragment }) => target && fragment)) {
      if (task.target.matches(SAID)) task.target = renew(task.target);
      $$(SAID, task.target).forEach(renew);
      for (const buttons of $$("[data-buttons]", task.target)) {
        const drawn = $(`#${buttons.id}`, task.fragment);
        if (drawn) keepPlaces(buttons, drawn);
      }
      hold(tasks, task);
    }
    tell();
  });

  function tell() {
    const button = $("[data-show]");
    if (!button) return;
    const isNew = ({ id }) => !document.getElementById(id);
    const news = [...waiting.values()].flatMap(rowsOf).filter(isNew).length;
    button.hidden = !waiting.size;
    button.textContent = news ? `${news > 99 ? "99+" : news} new · show` : "List changed · show";
  }
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("[data-show]")) return;
    for (const [id, drawn] of waiting) {
      const fresh = drawn.firstElementChild;
      document.getElementById(id)?.replaceWith(fresh);
      htmx.process(fresh);
    }
    waiting.clear();
    tell();
    document.dispatchEvent(new CustomEvent("studio:drawn"));
  });
})();
