/* Forms made from a schema: alternatives that change at once, and the focus after a part was added or removed. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const scripted = () => {
    // The button beside a list of alternatives is for pages without scripts.
    for (const one of $$("[data-press]")) document.getElementById(one.dataset.press)?.classList.add("visually-hidden");
  };
  document.addEventListener("change", ({ target }) => {
    if (target.dataset.press) document.getElementById(target.dataset.press)?.click();
  });
  // Typing a value clears its null box.
  document.addEventListener("input", ({ target }) => {
    const field = target.closest(".controls .field");
    const box = field && target.type !== "checkbox" && $(':scope > .check > input[name^="n."]', field);
    if (box && target.value) box.checked = false;
  });

  // No secret is sent back to the page: those that were typed stay in it. The server says where each was before.
  let typed = null;
  document.addEventListener("htmx:before:swap", ({ detail }) => {
    // The swap may replace the button: find its form before.
    const pressed = detail?.ctx?.sourceElement;
    if (!pressed?.matches?.('button[name="op"]') || !$(".json-form", pressed.form ?? undefined)) return;
    typed = new Map($$(".json-form input[type=password]").map(({ name, value }) => [name, value]));
  });
  document.addEventListener("htmx:after:swap", () => {
    scripted();
    if (typed === null) return;
    for (const field of $$(".json-form input[type=password]")) field.value = typed.get(field.dataset.before) ?? "";
    typed = null;
    for (const box of $$(".json-form .editor")) Studio.edit?.(box);
    $("[data-fresh]")?.focus();
  });
  document.addEventListener("DOMContentLoaded", scripted);

  // A link in a summary of problems leads into its field.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#f"]');
    const field = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (!field) return;
    event.preventDefault();
    field.scrollIntoView({ block: "center" });
    (field.matches("input, select, textarea") ? field : $("input, select, textarea, button", field) ?? field).focus();
  });
  // Enter in a field with a button of its own presses that one, not the first of the form.
  document.addEventListener("keydown", (event) => {
    const { enter } = event.target.dataset;
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey || !enter) return;
    event.preventDefault();
    document.getElementById(enter)?.click();
  });
  document.addEventListener("keydown", (event) => {
    const form = event.target.form;
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !form || !$(".json-form", form)) return;
    event.preventDefault();
    $("[data-main]:not([disabled])", form)?.click();
  });
})();
