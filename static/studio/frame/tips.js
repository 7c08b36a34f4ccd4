/* For the keyboard: show next to the row that has the focus what pointing at its times shows. Loaded with the first
   key that is pressed. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const ROW = "summary, tr, li, dd, .page-head, .note, p";
  const MOST = 5, WAIT_MS = 300, APART = 4;
  const tip = document.createElement("div");
  Object.assign(tip, { id: "tip", role: "tooltip", className: "tip", hidden: true });
  let waiting = 0, described = null;

  function lines(row) {
    const times = $$("time[title]", row).filter((time) => time.checkVisibility());
    const texts = times.map((time) => `${time.textContent.trim()} = ${time.title}`);
    return [...new Set(texts)].slice(0, MOST);
  }
  function place(row) {
    const at = row.getBoundingClientRect(), below = at.bottom + APART;
    const fits = below + tip.offsetHeight <= innerHeight;
    tip.style.top = `${Math.max(0, fits ? below : at.top - tip.offsetHeight - APART)}px`;
    tip.style.left = `${Math.max(APART, Math.min(at.right, innerWidth) - tip.offsetWidth - APART)}px`;
  }
  function hide() {
    clearTimeout(waiting);
    tip.hidden = true;
    described?.removeAttribute("aria-describedby");
    described = null;
  }
  function show(row, node) {
    const texts = row.isConnected ? lines(row) : [];
    if (!texts.length) return;
    tip.replaceChildren(...texts.map((text) => Object.assign(document.createElement("div"), { textContent: text })));
    tip.hidden = false;
    place(row);
    if (!node || node.hasAttribute("aria-describedby")) return;
    node.setAttribute("aria-describedby", "tip");
    described = node;
  }
  // Waits, so that moving on quickly shows nothing.
  Studio.showTimes = (row, node) => {
    hide();
    waiting = setTimeout(() => show(row, node), WAIT_MS);
  };
  function follow({ target }) {
    const row = target.closest(ROW);
    if (row && target.matches(":focus-visible") && !target.matches("input, textarea, select")) {
      Studio.showTimes(row, target);
    } else hide();
  }
  document.addEventListener("focusin", follow);
  document.addEventListener("focusout", hide);
  document.addEventListener("pointerdown", hide);
  document.addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.body.append(tip);
  const chosen = $("tr.selected, li.selected"); // by the key that has loaded this
  if (chosen) Studio.showTimes(chosen);
  else follow({ target: document.activeElement });
})();
