/* Open the dialog of a bulk job as a sheet over the page. Without this, links and forms lead to it as a page. */
(() => {
  "use strict";
  const { $, note } = Studio;
  const AWAY = "The server did not respond, so this may or may not have been done. Open Bulk jobs to see.";
  const REFUSED = "Not started. Reload the page and try again.";
  let sheet = null, kept = ""; // what was typed survives Esc
  const reason = () => $("#bulk-reason", sheet);

  function place() {
    if (sheet) return sheet;
    sheet = Object.assign(document.createElement("dialog"), { id: "sheet" });
    sheet.setAttribute("aria-labelledby", "sheet-title");
    sheet.addEventListener("close", () => { kept = reason()?.value ?? kept; });
    document.body.append(sheet);
    return sheet;
  }
  function show(text) {
    place().innerHTML = text;
    if (reason() && !reason().value) reason().value = kept;
    if (!sheet.open) sheet.showModal();
    ($("[data-focus]", sheet) ?? $("#sheet-title", sheet)).focus();
  }
  async function ask(address, body) {
    const request = { method: body ? "POST" : "GET", body, headers: { "HX-Request": "true" } };
    const answer = await fetch(address, request).catch(() => null);
    const to = answer?.headers.get("HX-Redirect");
    if (answer?.ok && to) {
      location.assign(to);
      sessionStorage.removeItem("studio-ticks"); // they are in the job now
    }
    else if ([200, 409, 422].includes(answer?.status)) show(await answer.text());
    else if (answer && !body) location.assign(address);
    else note(answer ? REFUSED : AWAY);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.to-sheet");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    ask(link.href);
  });
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (event.defaultPrevented || !form.matches(".to-sheet, #sheet form")) return;
    event.preventDefault();
    await ask(form.getAttribute("action"), new FormData(form, event.submitter));
    Studio.end(form);
  });
})();
