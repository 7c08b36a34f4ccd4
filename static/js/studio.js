/* Everything the pages do by themselves. They read and submit without this file; it adds ticking, live state and keys. */
(() => {
  "use strict";
  const $ = (selector, root = document) => selector && root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;
  const Studio = (window.Studio = { $, $$ });  // what the other files share

  // --- time: text ticks here, attributes come from the server -------------------------------------------------
  const skew = Date.parse($("meta[name=server-time]")?.content || "") - Date.now() || 0;
  const now = () => Date.now() + skew;
  const two = (n) => String(n).padStart(2, "0");

  function span(ms) {
    const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    if (d) return h % 24 ? `${d} d ${h % 24} h` : `${d} d`;
    if (h) return `${h} h ${two(m % 60)} m`;
    return m ? `${m} m ${two(s % 60)} s` : `${s} s`;
  }
  function ago(s) {
    if (s < 60) return s < 2 ? "just now" : `${s} s ago`;
    if (s < 3600) return `${Math.floor(s / 60)} min ago`;
    return s < 86400 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86400)} d ago`;
  }
  const clock = (Studio.clock = (t) => `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`);
  const day = (t) => `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`;
  const TEXT = {
    until: (t) => (t - now() > 0 ? `in ${span(t - now() + 999)}` : "due"),
    since: (t) => span(now() - t),
    ago: (t) => ago(Math.max(0, Math.floor((now() - t) / 1000))),
    clock: (t) => clock(t),
    moment: (t) => (day(t) === day(new Date(now())) ? clock(t) : `${day(t)} ${clock(t).slice(0, 5)}`),
  };
  function tick(scope = document) {
    for (const node of $$("time[data-kind]", scope)) {
      const at = new Date(node.dateTime), text = TEXT[node.dataset.kind]?.(at);
      if (!text || isNaN(at)) continue;
      const title = `${day(at)} ${clock(at)} ${zone.value} · ${at.toISOString()}`;
      if (node.textContent !== text) node.textContent = text;
      if (node.title !== title) node.title = title;
    }
  }
  setInterval(() => document.hidden || tick(), 1000);
  const zone = Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts().find((p) => p.type === "timeZoneName");
  for (const node of $$(".zone")) node.textContent = zone.value;

  // --- the tab tells the state of what it shows ---------------------------------------------------------------
  function wear() {
    const head = $("[data-tab-title]");
    if (!head) return;
    document.title = head.dataset.tabTitle;
    const icon = $("#favicon");
    if (icon && icon.getAttribute("href") !== head.dataset.tabIcon) icon.href = head.dataset.tabIcon;
  }

  // What was done is told until the instance moves on, and long enough to be read: "is paused" must not outlive a resume.
  // It lies over the page, so it goes by itself in the end.
  const READ_MS = 5000, LONGEST_MS = 10000;
  let told = null, toldAt = 0, toldOf = "";
  const hush = (note, ms) => setTimeout(() => note.isConnected && $("#flash").replaceChildren(), Math.max(0, ms));
  function forget() {
    const note = $("#flash > .s-complete"), of = $("[data-tab-title]")?.dataset.tabTitle;
    if (note !== told) {
      [told, toldAt, toldOf] = [note, Date.now(), of];
      if (note) hush(note, LONGEST_MS);
    } else if (note && of !== toldOf) hush(note, toldAt + READ_MS - Date.now());
  }

  const note = (Studio.note = (text, status = "errored") => {
    const said = document.createElement("div");
    said.className = `note s-${status}`;
    said.append(Object.assign(document.createElement("span"), { textContent: text }), closer());
    const form = $("dialog[open] form"); // which lies over all else
    if (form) { $(":scope > .note", form)?.remove(); form.prepend(said); }
    else $("#flash")?.replaceChildren(said);
  });
  function closer() {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "hush", textContent: "×" });
    button.setAttribute("aria-label", "Close this message");
    return button;
  }

  // What a dialog offers is over once the instance is: somebody else ended it, or it ended by itself, or began again.
  function release() {
    const has = (dialogs) => $(dialogs.map((id) => `${id}[open]`).join());
    const ended = $("#head[data-ended]"), open = ended ? has(["#terminate", "#event"]) : $("#head") && has(["#delete"]);
    if (!open) return;
    open.close();
    Studio.unsent?.($("form", open));
    note(ended ? "The instance has ended meanwhile: there is nothing left to send or to terminate." : "The instance was restarted meanwhile: only a finished one can be deleted.");
  }

  // Somebody else has restarted the instance: all that the page shows is of another generation now.
  let generation = "";
  function renewed() {
    const now = $("#head")?.dataset.generation;
    if (generation && now && now !== generation && !$("dialog[open]")) note(`This is generation ${now} now. ${$("#generations .how")?.textContent ?? ""}`, "paused");
    generation = now ?? generation;
    if (!$("#head[data-ended]") && document.body.dataset.live === "done") Studio.reconnect();
  }

  // --- what is folded ---------------------------------------------------------------------------------------
  // What is folded is fetched when somebody opens it, and anew while the instance moves on and it is open.
  const INNER_MS = 1000;
  const asked = new Map(); // by id: when it was last asked for, or that it soon will be
  const flying = new Set(), stale = new Set(); // an answer that is on its way may be older than what has happened
  function renew(node) {
    const { id } = node, last = asked.get(id);
    if (last === Infinity) return;
    asked.set(id, Infinity);
    setTimeout(() => {
      asked.set(id, Date.now());
      const now = document.getElementById(id);
      if (flying.has(id)) stale.add(id);
      else if (now?.closest("details").open) now.dispatchEvent(new CustomEvent("studio:inner"));
    }, Math.max(0, (last ?? 0) + INNER_MS - Date.now()));
  }
  const foldOf = ({ detail }) => detail?.ctx?.sourceElement?.closest?.("[data-inner]")?.id;
  document.addEventListener("htmx:before:request", (event) => { const id = foldOf(event); if (id) flying.add(id); });
  document.addEventListener("htmx:finally:request", (event) => {
    const id = foldOf(event), node = id && document.getElementById(id);
    flying.delete(id);
    if (node && stale.delete(id)) renew(node);
  });
  const renewOpen = () => { for (const node of $$("details[open] [data-inner]")) if (node.closest("details").open) renew(node); };
  document.addEventListener("toggle", ({ target }) => {
    if (target.open) for (const node of $$("[data-inner]", target)) if (node.closest("details") === target) renew(node);
  }, true);
  document.addEventListener("htmx:ws:after:message:incoming", renewOpen);
  document.addEventListener("htmx:after:request", ({ detail }) => {
    if (detail?.ctx?.sourceElement?.id === "reconcile" && detail.ctx.response?.status === 200) renewOpen();
  });

  // --- small things by attribute --------------------------------------------------------------------------------
  // A large value is not on the page as a whole: it is fetched when somebody wants it.
  const copied = (node) => node.dataset.copyAddress
    ? fetch(node.dataset.copyAddress).then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error(`${answer.status}`))))
    : Promise.resolve(node.dataset.copy);
  document.addEventListener("click", (event) => {
    const hit = (name) => event.target.closest(`[data-${name}]`);
    let node;
    if ((node = hit("copy"))) {
      event.preventDefault();
      copied(node).then((text) => navigator.clipboard.writeText(text)).then(() => { node.classList.add("done"); setTimeout(() => node.classList.remove("done"), 1200); });
    } else if ((node = hit("dialog"))) {
      const dialog = $(node.dataset.dialog);
      if (!dialog?.showModal) return;
      event.preventDefault();
      const field = $(node.dataset.fill || null);
      if (field && !field.value) field.value = node.dataset.value;
      fit($("form[data-send]", dialog));
      dialog.showModal();
      $$(".editor", dialog).forEach(edit);
    } else if ((node = hit("close"))) {
      event.preventDefault();
      node.closest("dialog").close();
    } else if (hit("retry")) {
      Studio.reconnect();
    } else if ((node = event.target.closest(".hush"))) {
      node.parentElement.remove();
    } else if ((node = hit("reveal"))) {
      event.preventDefault();
      node.closest("form").querySelector(".editor")?.studio?.reveal(Number(node.dataset.reveal));
    } else if ((node = event.target.closest("a[href*='#s-']")) && node.pathname === location.pathname) {
      setTimeout(unfold);
    }
  });
  document.addEventListener("change", (event) => { if (event.target.dataset.submit !== undefined) event.target.form.requestSubmit(); });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.theme !== undefined) {
      event.preventDefault();
      const next = { system: "light", light: "dark", dark: "system" }[root.dataset.theme] || "light";
      root.dataset.theme = next;
      const data = new FormData(form);
      data.set("theme", next);
      fetch(form.action, { method: "POST", body: data, keepalive: true, headers: { "HX-Request": "true" } });
      $(".theme-word").textContent = next[0].toUpperCase() + next.slice(1);
    }
  });
  // The form for an event shows what the typed type takes, and its example where nobody has typed anything else.
  document.addEventListener("input", (event) => { if (event.target.name === "type") fit(event.target.closest("form[data-send]")); });
  function fit(form) {
    if (!form) return;
    const type = form.elements.type.value.trim(), events = $$("[data-event]", form), about = events.find((node) => node.dataset.event === type);
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
  }
  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    const own = $("details", target);
    if (own && target.matches("li.step")) own.open = true;
    target.scrollIntoView({ block: "center" });
  }
  addEventListener("hashchange", unfold);

  // --- JSON editors: a textarea that works, an editor over it where the script is there ------------------------
  function edit(box) {
    const area = $("textarea", box), host = $(".editor-host", box);
    if (box.studio || !area || !host || !window.StudioEditor) return;
    box.studio = StudioEditor.mount(host, {
      doc: area.value,
      label: area.getAttribute("aria-label") || area.labels?.[0]?.textContent.trim() || "JSON",
      onChange(text) { area.value = text; area.dispatchEvent(new Event("input", { bubbles: true })); },
      onSubmit() { $(".button:not([type=button], [disabled])", area.form)?.click(); },
    });
    area.hidden = true;
    host.hidden = false;
    area.labels?.[0]?.addEventListener("click", () => box.studio.focus());
    mark(box.closest("form"));
  }
  function mark(form) {
    const box = form && $(".editor", form);
    if (!box) return;
    const wrong = $$("[data-wrong]", form).map((n) => n.dataset.wrong);
    for (const name of ["id", "tags"]) form.elements[name]?.setAttribute?.("aria-invalid", String(wrong.includes(name)));
    const marks = $$("[data-from]", form).map((n) => ({ from: +n.dataset.from, to: +n.dataset.to, message: n.dataset.message }));
    box.studio?.mark(marks);
    box.classList.toggle("invalid", marks.length > 0);
    $("textarea", box).setAttribute("aria-invalid", String(marks.length > 0));
  }

  // --- keys -------------------------------------------------------------------------------------------------------
  let pending = "";
  const GO = { h: "/", w: "/workflows/", i: "/instances/", a: "/approvals/", t: "/audit/", s: "/schedules/" };
  let chosen = "";  // a patch draws a row without our mark
  const again = () => chosen && document.getElementById(chosen)?.classList.add("selected");
  function choose(step) {
    const rows = $$("table.rows tbody tr[id], .inbox-list > li");
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.classList.contains("selected"));
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
    rows[at]?.classList.remove("selected");
    next.classList.add("selected");
    chosen = next.id;
    next.scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.composedPath()[0].closest?.("input, textarea, select, [contenteditable=true]");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || $("dialog[open]")) return;
    const key = event.key;
    if (pending === "g") {
      pending = "";
      if (GO[key]) location.assign(GO[key]);
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
    } else if (key === "s") $("[data-key=start]")?.click();
    else if (key === "t") $("form[data-theme]")?.requestSubmit();
    else if (key === "?") $("#keys")?.showModal();
  });

  // --- beginnings -------------------------------------------------------------------------------------------------
  // A refused form comes back with what is wrong: whoever sent it is led there.
  function lead() {
    const wrong = $("form.answer [data-focus]:not([data-led])");
    if (!wrong) return;
    wrong.dataset.led = "";
    wrong.focus();
  }
  document.addEventListener("htmx:after:swap", () => { again(); lead(); tick(); wear(); forget(); release(); renewed(); for (const form of $$("form.marked")) mark(form); fit($("dialog form[data-send]")); });
  document.addEventListener("DOMContentLoaded", () => {
    // An answer to a refused form is the instance's page: a reload shall show that, not send the form again.
    const address = $("[data-address]")?.dataset.address;
    if (address && address !== location.pathname) history.replaceState(null, "", address);
    tick();
    wear();
    forget();
    renewed();
    unfold();
    $$(".editor").forEach((box) => box.closest("dialog") || edit(box));
    $("[data-focus]")?.focus();
    fit($("dialog form[data-send]"));
    const status = $("dialog[data-open]");
    if (status) { status.showModal(); $$(".editor", status).forEach(edit); }
    if (!$("#live")) for (const dot of $$(".live")) dot.hidden = true;
  });
  addEventListener("pageshow", (event) => { if (event.persisted) Studio.reconnect(); });
})();
