/* A button that was pressed says at once that something happens, a form is sent once, and where no answer came to what
   a person did, the page says so: nothing else on it changes. */
(() => {
  "use strict";
  const { note } = Studio;
  const PATIENCE_MS = 20000; // then it may be pressed again: each of these forms is done once, however often it is sent
  const pressed = new Map(); // by form: its button, and the timer

  const unanswered = () => note(
    "The server did not respond, so this may or may not have been done. " +
    "Check the page when it is live again.",
  );
  const sends = (form) => form.method === "post" && form.dataset.theme === undefined;
  function begin(form, button) {
    button?.setAttribute("aria-busy", "true");
    pressed.set(form, { button, timer: setTimeout(() => giveUp(form), PATIENCE_MS) });
  }
  const end = (Studio.end = (form) => {
    const { button, timer } = pressed.get(form) ?? {};
    clearTimeout(timer);
    button?.removeAttribute("aria-busy");
    pressed.delete(form);
  });

  // Of its own requests htmx says that no answer came.
  function giveUp(form) {
    end(form);
    if (!form.hasAttribute("hx-post")) unanswered();
  }
  document.addEventListener("htmx:error", ({ detail }) => {
    const source = detail?.ctx?.sourceElement;
    if (source?.matches("form[method=post]") && !source.matches(".marked")) unanswered();
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!sends(form)) return;
    if (pressed.has(form)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else begin(form, event.submitter);
  }, true);
  // The answer may take the form away, and htmx then names another element: note the form before.
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (pressed.has(ctx.sourceElement)) ctx.studioForm = ctx.sourceElement;
  });
  document.addEventListener("htmx:finally:request", ({ detail }) => end(detail?.ctx?.studioForm));
  // Back to a page that the browser has kept: what was pressed then is over.
  addEventListener("pageshow", (event) => { if (event.persisted) for (const form of [...pressed.keys()]) end(form); });
})();
