/* Keys: g and the letter in a link's data-go follow it, j and k choose a row. studio/jump/shortcut-list.html has
   all of them. */
(() => {
  "use strict";
  const { $, $$, isTyping } = Studio;
  let pending = "";
  Studio.isAfterG = () => pending === "g";
  let chosen = ""; // a patch draws a row without the selection
  const again = () => chosen && document.getElementById(chosen)?.classList.add("selected");
  function choose(step) {
    const all = $$("table.rows tbody tr[id], .groups > li, .inbox-list > li");
    const rows = all.filter((row) => row.checkVisibility());
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.classList.contains("selected"));
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
    rows[at]?.classList.remove("selected");
    next.classList.add("selected");
    chosen = next.id;
    next.scrollIntoView({ block: "nearest" });
    Studio.showTimes?.(next);
  }
  document.addEventListener("keydown", (event) => {
    if (isTyping(event)) return;
    const key = event.key;
    if (pending === "g") {
      pending = "";
      event.stopImmediatePropagation(); // the letter means nothing else then
      $$("[data-go]").find((link) => link.dataset.go === key)?.click();
    } else if (key === "g") {
      pending = "g";
      setTimeout(() => { pending = ""; }, 900);
    } else if (key === "/" && $("input[type=search]")) {
      event.preventDefault();
      $("input[type=search]").focus();
    } else if (key === "j" || key === "k") choose(key === "j" ? 1 : -1);
    else if (key === "Enter" && event.target === document.body) $("tr.selected a, li.selected a")?.click();
    else if (key === "a" && $("form.answer")) {
      event.preventDefault();
      $("form.answer :is(input:not([type=hidden]), select, textarea)").focus();
    } else if (key === "n" && $("#note-text")) {
      event.preventDefault();
      $("#note-text").focus();
    } else if (key === "s") $("[data-key=start]")?.click();
    else if (key === "t") $("form[data-theme]")?.requestSubmit();
    else if (key === "?") shortcuts();
  });
  document.addEventListener("htmx:after:swap", again);

  async function shortcuts() {
    const link = $("[data-shortcuts]"), headers = { "HX-Request": "true" };
    if (!$("#keys")) {
      const answer = await fetch(link.href, { headers }).catch(() => null);
      if (!answer?.ok) return link.click();
      document.body.insertAdjacentHTML("beforeend", await answer.text());
    }
    if (!$("dialog[open]")) $("#keys").showModal();
  }

  // Loaded when first wanted.
  function load(src) {
    const script = Object.assign(document.createElement("script"), { src });
    document.head.append(script);
    return script;
  }
  addEventListener("load", () => load(document.body.dataset.soon));
  document.addEventListener("keydown", (event) => {
    Studio.firstKey = isTyping(event) ? "Unidentified" : event.key;
    document.body.dataset.later.trim().split(/\s+/).forEach((src) => load(src));
  }, { once: true });
  function jump() {
    if (Studio.jump) return Studio.jump();
    load($("[data-jump]").dataset.jump).addEventListener("error", () =>
      Studio.note("The server does not respond, so the search did not open. Try again in a moment."));
  }
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-jump]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    $("#rail-more:popover-open")?.hidePopover();
    jump();
  });
  document.addEventListener("keydown", (event) => {
    const isWanted = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    if (!isWanted || event.key.toLowerCase() !== "k" || !$("[data-jump]")) return;
    event.preventDefault();
    event.stopPropagation();
    jump();
  }, true);
})();
