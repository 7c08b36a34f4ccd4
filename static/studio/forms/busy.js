/* Show at once that a pressed button works, send each form once, and say so when no answer comes to what somebody
   did. */
(() => {
  "use strict";
  const { note } = Studio;
  const PATIENCE_MS = 20000; // then it can be pressed again: sending one of these forms twice does it once
  const pressed = new Map(); // form → its button and timer

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

  // htmx reports missing answers to its own requests.
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
  // The answer may remove the form, and htmx then names another element: remember the form first.
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (pressed.has(ctx.sourceElement)) ctx.studioForm = ctx.sourceElement;
  });
  document.addEventListener("htmx:finally:request", ({ detail }) => end(detail?.ctx?.studioForm));
  // The browser may restore a cached page: what was pressed then is over.
  addEventListener("pageshow", (event) => { if (event.persisted) for (const form of [...pressed.keys()]) end(form); });
})();
