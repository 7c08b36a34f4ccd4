/* Never lose what somebody has typed. If the page removes a form because somebody else was faster or the instance has
   ended, what was typed stays on the page, to be read and copied. Loaded when the page is there. */
(() => {
  "use strict";
  const { $, $$, note } = Studio;
  const drafts = new Map(); // form id → the form, and what was typed
  const FIELDS = "input:not([type=hidden], [type=password]), select, textarea";

  function fields(form) {
    const found = []; // pairs of label and text: two fields may have the same label
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
  // "Home › street": the legends of the groups around a field come before its own label.
  function label(one) {
    const own = one.labels?.[0]?.cloneNode(true);
    own?.querySelector(".optional")?.remove();
    const parts = one.type === "radio" ? [] : [own?.textContent ?? one.name];
    for (let group = one.closest("fieldset"); group; group = group.parentElement.closest("fieldset")) {
      const legend = $(":scope > legend", group);
      if (legend) parts.unshift(legend.textContent);
    }
    return parts.map((part) => part.replace("*", "").replace(/\s+/g, " ").trim()).join(" › ");
  }

  const words = (node) => node?.textContent.replace(/\s+/g, " ").trim() ?? "";
  // Who was faster and why. If the page shows something else by now, ask for the request's page.
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

  function keep(form) {
    if (form?.dataset.keep === undefined || !form.id) return;
    const typed = fields(form);
    if (typed.length) drafts.set(form.id, { form, typed });
    else drafts.delete(form.id);
  }
  document.addEventListener("input", ({ target }) => keep(target.form));
  Studio.typed.forEach(keep); // before this was loaded
  // For a dialog that closes because there is nothing left to do in it.
  Studio.unsent = (form) => { if (drafts.has(form?.id)) show(form.id); };
  // The effect of an answer can be on the page before the server confirms it: keep the draft until then.
  const sending = new Set();
  function settle() {
    for (const [id, draft] of drafts) {
      const now = document.getElementById(id);
      if (now) draft.form = now; // the server has drawn it again, with what was typed
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

  // Signed out, or in again, in another tab: leaving the page would lose what was typed.
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
  // Before a form leaves the page, check that the server answers and the session is still valid.
  const PATIENCE_MS = 8000;
  const AWAY =
    "The server did not respond, so nothing was sent. What you typed is still here: try again in a moment.";
  document.addEventListener("submit", async (event) => {
    const form = event.target, where = $("#reconcile")?.getAttribute("hx-get");
    if (form.hasAttribute("hx-post") || !drafts.has(form.id) || !where) return;
    event.preventDefault();
    const asked = fetch(where, { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(PATIENCE_MS) });
    const answer = await asked.catch(() => null);
    if (!form.isConnected || !drafts.has(form.id)) return; // it has ended in the meantime, and the page says so
    if (answer && answer.status !== 401) {
      drafts.delete(form.id);
      form.submit();
      return;
    }
    Studio.end(form);
    note(answer ? OUT : AWAY);
  });
})();
