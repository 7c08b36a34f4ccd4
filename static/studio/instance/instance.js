/* Keep the page of an instance up to date: tab title and icon, dialogs, generation. */
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

  // Close a dialog whose action is no longer possible: the instance has ended, or was restarted.
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

  // Somebody else restarted the instance: the whole page now shows another generation.
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
