/* Keys for the rows of an instance: j and k go from one to the next, f to the next failed one, and the arrows show and
   hide the steps inside one. Loaded with the first key. */
(() => {
  "use strict";
  const { $, isTyping } = Studio;
  if (!Studio.panes) return;
  const { rows, open, linkOf, show } = Studio.panes;
  const BETWEEN_MS = 120; // while somebody holds j, only the last row is opened
  let timer = 0;

  function move(step) {
    const all = rows(), focused = all.findIndex((row) => row.contains(document.activeElement));
    const at = focused < 0 ? all.indexOf(open()) : focused;
    const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + step))];
    if (!next) return;
    const isOpen = Boolean(open());
    linkOf(next).focus();
    clearTimeout(timer);
    if (isOpen) timer = setTimeout(() => show(next), BETWEEN_MS);
  }
  function nextFailed() {
    const all = rows(), at = all.indexOf(open());
    const bad = all.filter((row) => row.matches(".s-errored, .s-retrying, .s-paused") && row.id !== "result");
    const next = bad.find((row) => all.indexOf(row) > at) ?? bad[0];
    if (next) {
      show(next);
      linkOf(next).focus();
    } else $("[data-failed]")?.click();
  }
  function unfold(isWanted) {
    const row = document.activeElement?.closest("tr.row");
    if (row) $(`.kids[aria-expanded="${!isWanted}"]`, row)?.click();
  }
  function act(key) {
    if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
    else if (key === "f") nextFailed();
    else if (key === "ArrowRight" || key === "ArrowLeft") unfold(key === "ArrowRight");
  }
  document.addEventListener("keydown", (event) => {
    if (!isTyping(event) && !event.defaultPrevented && !Studio.isAfterG()) act(event.key);
  });
  act(Studio.firstKey);
})();
