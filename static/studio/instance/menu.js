/* The menu of actions: `.` opens it; Escape, a press elsewhere and a dialog close it. */
(() => {
  "use strict";
  const { $, isTyping } = Studio;
  const menu = () => $("#more-actions");
  function close() {
    if (!menu()?.open) return false;
    menu().open = false;
    return true;
  }
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("#more-actions") || target.closest("#more-actions .item[data-dialog]")) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && close()) $("#more-actions > summary").focus();
    else if (event.key === "." && menu() && !isTyping(event)) {
      menu().open = true;
      $("#more-actions .item")?.focus();
    }
  });
})();
