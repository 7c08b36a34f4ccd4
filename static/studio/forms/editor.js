/* JSON editors: a textarea that works, replaced by an editor. Loaded when the page is there; the editor's own large
   script is loaded for the first one. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const main = (form) => (
    $("[data-main]", form) ? $("[data-main]:not([disabled])", form) : $(".button:not([type=button], [disabled])", form)
  );
  let loading;
  function load(address) {
    loading ??= new Promise((done) => {
      const script = Object.assign(document.createElement("script"), { src: address, onload: done });
      script.onerror = () => {
        loading = undefined; // the next one tries again
        script.remove();
        done();
      };
      document.head.append(script);
    });
    return loading;
  }
  Studio.edit = async (box) => {
    const area = $("textarea", box), host = $(".editor-host", box);
    if (box.studio || !area || !host) return;
    await load(host.dataset.source);
    if (box.studio || !window.StudioEditor) return;
    const caret = document.activeElement === area ? area.selectionEnd : null;
    box.studio = StudioEditor.mount(host, {
      doc: area.value,
      label: area.getAttribute("aria-label") || area.labels?.[0]?.textContent.trim() || "JSON",
      onChange(text) {
        area.value = text;
        area.dispatchEvent(new Event("input", { bubbles: true }));
      },
      onSubmit: () => main(area.form)?.click(),
    });
    area.hidden = true;
    host.hidden = false;
    area.labels?.[0]?.addEventListener("click", () => box.studio.focus());
    mark(box.closest("form"));
    if (caret !== null) box.studio.reveal(caret);
  };
  function mark(form) {
    const box = form && $(".editor", form);
    if (!box) return;
    const wrong = $$("[data-wrong]", form).map((n) => n.dataset.wrong);
    for (const name of ["id", "tags"]) {
      form.elements[name]?.setAttribute?.("aria-invalid", String(wrong.includes(name)));
    }
    const marks = $$("[data-from]", form).map(({ dataset }) => (
      { from: +dataset.from, to: +dataset.to, message: dataset.message }
    ));
    box.studio?.mark(marks);
    box.classList.toggle("invalid", marks.length > 0);
    $("textarea", box).setAttribute("aria-invalid", String(marks.length > 0));
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-reveal]");
    if (!link) return;
    event.preventDefault();
    const box = $(".editor", link.closest("form"));
    if (box) Studio.edit(box).then(() => box.studio?.reveal(Number(link.dataset.reveal)));
  });
  document.addEventListener("htmx:after:swap", () => $$("form.marked").forEach(mark));
  // Those of a dialog wait until it is opened.
  for (const box of $$(".editor")) if (box.closest("dialog")?.open !== false) Studio.edit(box);
})();
