/* Show at once that a pressed button works, send each form once, and say so when no answer comes to what somebody
   did. */
(() => {
  "use strict";
  const { $, note } = Studio;
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

  // A plain form leaves the page, and where no server is, the browser shows its own page instead. So while the
  // connection is lost, or where the page has none, first see whether the server answers: only the socket may be cut.
  const ASK_MS = 5000;
  const sure = new WeakSet(); // forms that the server answered for
  const FIELDS = "textarea, select, input:not([type=hidden])";
  const where = () => $("#reconcile")?.getAttribute("hx-get") ?? $("a[data-shortcuts]")?.href;
  const isLive = () => $("#live") && document.body.dataset.live !== "offline";
  const isDoubtful = (form) => !isLive() && where() && !form.hasAttribute("hx-post") && !sure.delete(form);
  async function sendIfThere(form, button) {
    const asked = fetch(where(), { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(ASK_MS) });
    const answer = await asked.catch(() => null);
    end(form);
    if (!answer || answer.status >= 500) {
      const when = $("#live") ? "when the page is live again" : "in a moment";
      return note(`The server does not respond, so nothing was sent. Try again ${when}.`);
    }
    if (answer.status === 401 && $(FIELDS, form)) {
      return note("You are signed out, so nothing was sent. What you typed is still here: copy it, then sign in.");
    }
    sure.add(form);
    form.requestSubmit(button);
  }

  function hold(event) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    if (!sends(form)) return;
    if (pressed.has(form)) return hold(event);
    begin(form, submitter);
    if (!isDoubtful(form)) return;
    hold(event);
    sendIfThere(form, submitter);
  }, true);
  // The answer may remove the form, and htmx then names another element: remember the form first.
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (pressed.has(ctx.sourceElement)) ctx.studioForm = ctx.sourceElement;
  });
  document.addEventListener("htmx:finally:request", ({ detail }) => end(detail?.ctx?.studioForm));
  // The browser may restore a cached page: what was pressed then is over.
  addEventListener("pageshow", (event) => { if (event.persisted) for (const form of [...pressed.keys()]) end(form); });
})();
