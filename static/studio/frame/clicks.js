/* Click actions that attributes name: copy, open and close a dialog, change the theme. Groups on Home open, too. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const DONE_MS = 1200;

  // The page does not contain all of a large value: fetch it when somebody copies it.
  async function copied({ dataset: { copy, copyAddress } }) {
    if (!copyAddress) return copy;
    const answer = await fetch(copyAddress);
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.text();
  }
  async function copy(node) {
    await navigator.clipboard.writeText(await copied(node));
    node.classList.add("done");
    setTimeout(() => node.classList.remove("done"), DONE_MS);
  }

  function open(dialog) {
    dialog.showModal();
    for (const box of $$(".editor", dialog)) Studio.edit?.(box);
  }
  document.addEventListener("click", (event) => {
    const hit = (name) => event.target.closest(`[data-${name}]`);
    let node;
    if ((node = hit("copy"))) {
      event.preventDefault();
      copy(node);
    } else if ((node = hit("dialog"))) {
      const dialog = $(node.dataset.dialog);
      if (!dialog?.showModal) return;
      event.preventDefault();
      const field = $(node.dataset.fill || null);
      if (field && !field.value) field.value = node.dataset.value;
      Studio.fit($("form[data-send]", dialog));
      open(dialog);
    } else if ((node = hit("close"))) {
      event.preventDefault();
      node.closest("dialog").close();
    }
  });
  // A group on Home opens wherever it is pressed, unless somebody selects its text.
  document.addEventListener("click", (event) => {
    const group = event.target.closest(".groups > li");
    if (!group || event.target.closest("a, button, form") || String(getSelection())) return;
    const link = $("a.title", group);
    if (event.ctrlKey || event.metaKey) window.open(link.href);
    else link.click();
  });

  // The open tab may be beyond the edge of a phone.
  document.addEventListener("DOMContentLoaded", () => {
    const tab = $(".tabs [aria-current]"), bar = tab?.closest(".tabs");
    if (bar) bar.scrollLeft += tab.getBoundingClientRect().left - bar.getBoundingClientRect().left - 40;
    const status = $("dialog[data-open]");
    if (status) open(status);
  });

  const NEXT = { system: "light", light: "dark", dark: "system" };
  document.addEventListener("submit", (event) => {
    const form = event.target, root = document.documentElement;
    if (form.dataset.theme === undefined) return;
    event.preventDefault();
    const next = (root.dataset.theme = NEXT[root.dataset.theme] || "light");
    const body = new FormData(form);
    body.set("theme", next);
    const headers = { "HX-Request": "true" };
    fetch(form.getAttribute("action"), { method: "POST", body, keepalive: true, headers });
    $(".theme-word").textContent = next;
  });
})();
