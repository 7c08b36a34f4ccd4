/* What somebody has typed is never wiped. Where the page takes a form away, since somebody else was faster or the
   instance has ended, its content stays beside, to be read and copied. */
(() => {
  "use strict";
  const { $, $$, note } = Studio;
  const drafts = new Map(); // by the id of the form: the form, and what was typed
  const FIELDS = "input:not([type=hidden], [type=password]), select, textarea";

  function fields(form) {
    const found = []; // of a label and a text: two fields may have the same label
    for (const one of $$(FIELDS, form)) {
      const isChoice = one.type === "radio" || one.type === "checkbox";
      if (isChoice ? one.checked : one.value.trim()) found.push([label(one), (text(one) ?? "").trim()]);
    }
    return found;
  }
  function text(one) {
    if (one.type === "checkbox") return "yes";
    if (one.type === "radio") return one.labels[0]?.textContent;
    return one.tagName === "SELECT" ? one.selectedOptions[0]?.textContent : one.value;
  }
  // A street says whose: the legends of the groups around a field stand before its own label.
  function label(one) {
    const parts = one.type === "radio" ? [] : [one.labels?.[0]?.textContent ?? one.name];
    for (let group = one.closest("fieldset"); group; group = group.parentElement.closest("fieldset")) {
      const legend = $(":scope > legend", group);
      if (legend) parts.unshift(legend.textContent);
    }
    return parts.map((part) => part.replace("*", "").replace(/\s+/g, " ").trim()).join(" › ");
  }

  const words = (node) => node?.textContent.replace(/\s+/g, " ").trim() ?? "";
  // Who was faster and why. The page may have gone on already: then its request is asked for.
  async function why(id, form) {
    const closing = (page) => words($(`#${CSS.escape(id.replace("answer-", "ask-"))} [data-closed]`, page));
    const told = closing(document);
    if (told || !form.dataset.about) return told || words($("#flash > .s-errored > span")) || words($("#why"));
    const answer = await fetch(form.dataset.about).catch(() => null);
    const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : document;
    return closing(page) || words($("#why"));
  }
  const button = (textContent) => (
    Object.assign(document.createElement("button"), { type: "button", className: "button", textContent })
  );
  function show(id) {
    const { form, typed } = drafts.get(id);
    drafts.delete(id);
    const box = Object.assign(document.createElement("section"), { className: "note s-paused unsent" });
    const facts = Object.assign(document.createElement("dl"), { className: "facts" });
    for (const [name, text] of typed) {
      facts.append(Object.assign(document.createElement("dt"), { textContent: name }));
      facts.append(Object.assign(document.createElement("dd"), { textContent: text, dir: "auto" }));
    }
    const told = document.createElement("p");
    told.append(Object.assign(document.createElement("strong"), { textContent: `${form.dataset.keep} was not sent.` }));
    why(id, form).then((text) => told.append(` ${text}`));
    const copy = button("Copy what you typed");
    copy.dataset.copy = [...typed].map(([name, text]) => `${name}: ${text}`).join("\n");
    const away = button("Discard");
    away.addEventListener("click", () => box.remove());
    const actions = Object.assign(document.createElement("p"), { className: "actions" });
    actions.append(copy, away);
    box.append(told, facts, actions);
    $("#unsent")?.append(box);
  }

  document.addEventListener("input", ({ target }) => {
    const form = target.form;
    if (form?.dataset.keep === undefined || !form.id) return;
    const typed = fields(form);
    if (typed.length) drafts.set(form.id, { form, typed });
    else drafts.delete(form.id);
  });
  // A dialog that is closed since there is nothing left to do in it.
  Studio.unsent = (form) => { if (drafts.has(form?.id)) show(form.id); };
  // What an answer has done may be on the page before the server's word that it was taken: until then nothing is lost.
  const sending = new Set();
  function settle() {
    for (const [id, draft] of drafts) {
      const now = document.getElementById(id);
      if (now) draft.form = now; // the server has put it back, with what was typed
      else if (!sending.has(id)) show(id);
    }
  }
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (!drafts.has(ctx.sourceElement.id)) return;
    ctx.studioDraft = ctx.sourceElement.id;
    sending.add(ctx.studioDraft);
  });
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (ctx.response.status < 300) drafts.delete(ctx.studioDraft);
  });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    if (sending.delete(ctx.studioDraft)) settle();
  });
  document.addEventListener("htmx:after:swap", settle);

  // Signed out, or in again, in another tab: the way there would take what was typed along.
  const OUT = "You are signed out, so nothing was sent. What you typed is still here: copy it, then sign in.";
  const IN_AGAIN =
    "You signed in again after this page was opened, so nothing was sent. " +
    "Copy what you typed, then reload the page.";
  document.addEventListener("htmx:before:response", (event) => {
    const { hx, sourceElement } = event.detail.ctx;
    if (!(hx?.redirect || hx?.refresh) || !drafts.has(sourceElement?.id)) return;
    event.preventDefault();
    note(hx.refresh ? IN_AGAIN : OUT);
  });
  // A form that leaves the page does so once the server is there, and still knows who asks.
  const PATIENCE_MS = 8000;
  const AWAY =
    "The server did not respond, so nothing was sent. What you typed is still here: try again in a moment.";
  document.addEventListener("submit", async (event) => {
    const form = event.target, where = $("#reconcile")?.getAttribute("hx-get");
    if (form.hasAttribute("hx-post") || !drafts.has(form.id) || !where) return;
    event.preventDefault();
    const asked = fetch(where, { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(PATIENCE_MS) });
    const answer = await asked.catch(() => null);
    if (!form.isConnected || !drafts.has(form.id)) return; // it was over meanwhile, and has been told so
    if (answer && answer.status !== 401) {
      drafts.delete(form.id);
      form.submit();
      return;
    }
    Studio.end(form);
    note(answer ? OUT : AWAY);
  });
})();
