/* Messages over the page: what was done, and what went wrong. */
(() => {
  "use strict";
  const { $, onDrawn } = Studio;
  // A message about an action stays until the instance changes, but long enough to be read: "Paused" must not outlive a
  // resume. It covers a part of the page, so it disappears in the end.
  const READ_MS = 5000, LONGEST_MS = 10000;
  let told = null, toldAt = 0, toldOf = "";
  const hush = (note, ms) => setTimeout(() => note.isConnected && $("#flash").replaceChildren(), Math.max(0, ms));
  function forget() {
    const note = $("#flash > .s-complete"), of = $("[data-tab-title]")?.dataset.tabTitle;
    if (note !== told) {
      [told, toldAt, toldOf] = [note, Date.now(), of];
      if (note) hush(note, LONGEST_MS);
    } else if (note && of !== toldOf) hush(note, toldAt + READ_MS - Date.now());
  }

  Studio.note = (text, status = "errored") => {
    const said = document.createElement("div");
    said.className = `note s-${status}`;
    said.append(Object.assign(document.createElement("span"), { textContent: text }), closer());
    const form = $("dialog[open] form"); // a dialog covers everything else
    if (form) { $(":scope > .note", form)?.remove(); form.prepend(said); }
    else $("#flash")?.replaceChildren(said);
  };
  function closer() {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "hush", textContent: "×" });
    button.setAttribute("aria-label", "Close this message");
    return button;
  }
  document.addEventListener("click", ({ target }) => target.closest(".hush")?.parentElement.remove());
  onDrawn(forget);
})();
