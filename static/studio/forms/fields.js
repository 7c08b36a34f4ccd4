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
  // Who types a value does not mean null.
  document.addEventListener("input", ({ target }) => {
    const field = target.closest(".controls .field");
    const box = field && target.type !== "checkbox" && $(':scope > .check > input[name^="n."]', field);
    if (box && target.value) box.checked = false;
  });

  // No secret is sent back to the page: those that were typed stay in it, unless items have moved.
  let typed = [];
  const isOurs = (detail) => detail?.ctx?.sourceElement?.matches?.('.json-form button[name="op"]');
  document.addEventListener("htmx:before:swap", ({ detail }) => {
    if (!isOurs(detail)) return;
    const [verb, pointer = ""] = detail.ctx.sourceElement.value.split(/:(.*)/s);
    const around = ["up", "down", "remove"].includes(verb) ? pointer.replace(/\/[^/]*$/, "") : null;
    typed = $$(".json-form input[type=password]")
      .filter(({ name, value }) => value && (around === null || !name.startsWith(`f.${around}/`)))
      .map(({ name, value }) => [name, value]);
  });
  document.addEventListener("htmx:after:swap", ({ detail }) => {
    scripted();
    if (!isOurs(detail)) return;
    for (const [name, value] of typed) {
      const field = $(`.json-form input[type=password][name="${CSS.escape(name)}"]`);
      if (field) field.value = value;
    }
    typed = [];
    for (const box of $$(".json-form .editor")) Studio.edit(box);
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
    (field.matches("input, select, textarea") ? field : $("input, select, textarea", field) ?? field).focus();
  });
  document.addEventListener("keydown", (event) => {
    const form = event.target.form;
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !form || !$(".json-form", form)) return;
    event.preventDefault();
    $("[data-main]:not([disabled])", form)?.click();
  });
})();
