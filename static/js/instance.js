/* The page of an instance follows it: the tab, the dialogs and the generation. */
(() => {
  "use strict";
  const { $, note, onDrawn } = Studio;
  function wear() {
    const head = $("[data-tab-title]");
    if (!head) return;
    document.title = head.dataset.tabTitle;
    const icon = $("#favicon");
    if (icon && icon.getAttribute("href") !== head.dataset.tabIcon) icon.href = head.dataset.tabIcon;
  }

  // What a dialog offers is over once the instance is: somebody else ended it, or it ended by itself, or began again.
  function release() {
    const has = (dialogs) => $(dialogs.map((id) => `${id}[open]`).join());
    const ended = $("#head[data-ended]"), open = ended ? has(["#terminate", "#event"]) : $("#head") && has(["#delete"]);
    if (!open) return;
    open.close();
    Studio.unsent?.($("form", open));
    note(
      ended ? "The instance has ended, so there is nothing to send or terminate."
        : "The instance was restarted. Only a finished instance can be deleted.",
    );
  }

  // Somebody else has restarted the instance: all that the page shows is of another generation now.
  let generation = "";
  function renewed() {
    const now = $("#head")?.dataset.generation;
    if (generation && now && now !== generation && !$("dialog[open]")) {
      note(`This is generation ${now} now. ${$("#generations .how")?.textContent ?? ""}`, "paused");
    }
    generation = now ?? generation;
    if (!$("#head[data-ended]") && document.body.dataset.live === "done") Studio.reconnect();
  }

  onDrawn(wear);
  document.addEventListener("htmx:after:swap", release);
  onDrawn(renewed);
})();
