/* The menus of the page: `.` opens that of the actions; Escape, a press elsewhere and a choice close them. */
(() => {
  "use strict";
  const { $, isTyping } = Studio;
  const menu = () => $("#more-actions");
  const opened = () => $("details.menu[open]");
  function close() {
    const found = opened();
    if (found) found.open = false;
    return found;
  }
  document.addEventListener("click", ({ target }) => {
    const within = target.closest("details.menu");
    const found = opened();
    if (found && (found !== within || target.closest(".menu .item[data-dialog]"))) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && opened()) close().querySelector("summary").focus();
    else if (event.key === "." && menu() && !isTyping(event)) {
      menu().open = true;
      $("#more-actions .item:not([disabled])")?.focus();
    }
  });
})();
