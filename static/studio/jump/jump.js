/* The dialog of "Search or jump": what is typed is looked up, arrows choose, Enter goes there. The actions of the page
   that is open come first. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const link = $("[data-jump]");
  const TYPING_MS = 120;
  const ACTIONS = ":is(#actions, #error-steer, #error-going, .page-head .end) :is(button, a)";
  document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: link.dataset.style }));
  const dialog = document.createElement("dialog");
  dialog.id = "jump";
  dialog.setAttribute("aria-label", "Search or jump");
  dialog.innerHTML = `<form class="jump-form" role="search">
    <input name="q" maxlength="200" autocomplete="off" spellcheck="false" enterkeyhint="go"
      aria-label="A page, a workflow, an action, or the ID of an instance" aria-describedby="jump-keys"
      placeholder="Page, workflow, action or ID"></form>
    <div class="jump-found"></div>
    <p class="jump-keys muted small" id="jump-keys"><kbd>↑</kbd> <kbd>↓</kbd> choose · <kbd>Enter</kbd> go there ·
    <kbd>Esc</kbd> close</p>`;
  document.body.append(dialog);
  const form = $("form", dialog), field = $("input", dialog), list = $(".jump-found", dialog);
  let timer = 0, asked = 0;

  const entries = () => $$("a", list);
  const textOf = (node) => [...node.childNodes].filter((one) => one.nodeName !== "svg").map((one) => one.textContent)
    .join(" ").replace(/\s+/g, " ").trim();

  // What the page can do now, under the names that its own buttons have.
  function actions(words) {
    const named = new Map();
    for (const node of $$(ACTIONS)) {
      const name = textOf(node);
      const isOff = node.disabled || node.getAttribute("aria-disabled") === "true" || node.closest("[hidden]");
      if (name && !isOff && words.every((word) => name.toLowerCase().includes(word))) named.set(name, node);
    }
    return [...named];
  }
  function section(found) {
    const part = document.createElement("section");
    part.innerHTML = "<h2>On this page</h2><ul></ul>";
    for (const [name, node] of found) {
      const item = document.createElement("li"), one = document.createElement("a");
      one.href = node.href || "#";
      const icon = $("svg", node)?.cloneNode(true);
      one.append(...[icon, Object.assign(document.createElement("span"), { textContent: name })].filter(Boolean));
      one.addEventListener("click", (event) => {
        if (node.href) return;
        event.preventDefault();
        dialog.close();
        node.click();
      });
      item.append(one);
      $("ul", part).append(item);
    }
    return part;
  }

  async function look() {
    const mine = ++asked, typed = field.value;
    const url = `${link.pathname}?${new URLSearchParams({ q: typed })}`;
    const answer = await fetch(url, { headers: { "HX-Request": "true" } }).catch(() => null);
    const html = answer?.ok ? await answer.text().catch(() => "") : "";
    if (mine !== asked) return;
    list.innerHTML = html;
    const found = actions(typed.toLowerCase().split(/\s+/).filter(Boolean));
    if (found.length) list.prepend(section(found));
    if (!answer?.ok) {
      const said = answer?.status === 401 ? "You are signed out. Sign in again to search."
        : "The server did not respond. Try again in a moment.";
      list.append(Object.assign(document.createElement("p"), { className: "muted small", textContent: said }));
    }
    const [first] = entries();
    if (first) first.dataset.first = "";
    list.scrollTop = 0;
    $("#say").textContent = entries().length === 1 ? "1 result" : `${entries().length} results`;
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, TYPING_MS);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    await look(); // what is typed now, not what was found a moment ago
    entries()[0]?.click();
  });
  dialog.addEventListener("keydown", (event) => {
    const all = entries(), at = all.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const next = at + step;
      if (next < 0) field.focus();
      else all[Math.min(next, all.length - 1)]?.focus();
    } else if (at >= 0 && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) field.focus();
  });
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close();
  });

  Studio.jump = () => {
    if (dialog.open) return dialog.close();
    if ($("dialog[open]")) return;
    dialog.showModal();
    field.value = "";
    field.focus();
    look();
  };
  Studio.jump();
})();
