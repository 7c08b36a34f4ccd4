/* Forms: the payload of the chosen event, fields that submit at once, and focus on what is wrong. */
(() => {
  "use strict";
  const { $, $$, onDrawn } = Studio;
  // Show the payload of the typed event, and fill in its example unless somebody has typed something else.
  const typed = (Studio.typed = new Set()); // forms, until drafts.js is there
  document.addEventListener("input", ({ target }) => {
    if (!Studio.unsent) typed.add(target.form);
    if (target.name === "type") fit(target.closest("form[data-send]"));
  });
  const fit = (Studio.fit = (form) => {
    if (!form) return;
    const type = form.elements.type.value.trim(), events = $$("[data-event]", form);
    const about = events.find((node) => node.dataset.event === type);
    for (const node of events) node.hidden = node !== about;
    for (const node of $$("[data-optional]", form)) node.hidden = about?.dataset.required !== undefined;
    if (form.dataset.fits === type) return;
    form.dataset.fits = type;
    const area = form.elements.payload, example = about?.dataset.example || "";
    if (area.value.trim() && !events.some((node) => node.dataset.example === area.value)) return;
    if (area.value === example) return;
    const editor = area.closest(".editor").studio;
    if (editor) editor.replace(example);
    else area.value = example;
  });
  onDrawn(() => fit($("dialog form[data-send]")));

  document.addEventListener("change", ({ target }) => {
    if (target.dataset.submit !== undefined) target.form.requestSubmit();
  });

  // Chromium 156 crashes when htmx moves a part of a form that has a date picker with this method.
  const { moveBefore } = Element.prototype;
  if (moveBefore) Element.prototype.moveBefore = function move(...where) {
    ($("input:is([type^=date], [type=time])") ? this.insertBefore : moveBefore).apply(this, where);
  };

  // A script that a field needs once somebody goes to it.
  document.addEventListener("focusin", ({ target }) => {
    const { script: src } = target.dataset;
    if (!src) return;
    delete target.dataset.script;
    document.head.append(Object.assign(document.createElement("script"), { src }));
  });

  // A refused form comes back with its problems: move the focus there.
  document.addEventListener("htmx:after:swap", () => {
    const wrong = $("form.answer [data-focus]:not([data-led])");
    if (!wrong) return;
    wrong.dataset.led = "";
    wrong.focus();
  });
  document.addEventListener("DOMContentLoaded", () => {
    $("[data-focus]")?.focus();
    // The answer to a refused form is the instance's page: a reload must show that, not send the form again.
    const address = $("[data-address]")?.dataset.address;
    if (address && address !== location.pathname) history.replaceState(null, "", address);
  });
})();
