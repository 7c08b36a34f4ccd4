/* The search field of the list: suggestions while somebody types. Without them it is a plain field of a GET form. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const DELAY_MS = 150, LONGEST = 2000;
  const field = $("[data-suggest]");
  if (!field) return;
  const place = $("#suggestion-place");
  let timer = 0, asking = null;
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-haspopup": "listbox",
    "aria-controls": "suggestions", "aria-expanded": "false",
  })) field.setAttribute(name, value);

  const options = () => $$("[role=option]", place);
  const chosen = () => $("[aria-selected=true]", place);
  const isOpen = () => !place.hidden;

  // Positions are counted in characters, as the server does, not in UTF-16 units.
  const characters = (text) => [...text].length;
  function ask(delay) {
    clearTimeout(timer);
    asking?.abort();
    timer = setTimeout(fetchThem, delay);
  }
  async function fetchThem() {
    const text = field.value, caret = field.selectionStart;
    if (text.length > LONGEST || caret !== field.selectionEnd) return close();
    const about = new URLSearchParams({ query: text, at: characters(text.slice(0, caret)) });
    const mine = (asking = new AbortController());
    const given = { signal: mine.signal, headers: { "HX-Request": "true" } };
    const answer = await fetch(`${field.dataset.suggest}?${about}`, given).catch(() => null);
    const html = answer?.ok ? await answer.text().catch(() => "") : "";
    if (mine.signal.aborted || document.activeElement !== field || field.value !== text) return;
    place.innerHTML = html;
    place.hidden = !options().length;
    field.setAttribute("aria-expanded", String(isOpen()));
    field.removeAttribute("aria-activedescendant");
  }
  function close() {
    clearTimeout(timer);
    asking?.abort();
    place.hidden = true;
    place.replaceChildren();
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }
  function move(step) {
    const all = options(), at = all.indexOf(chosen()), next = at + step;
    all[at]?.setAttribute("aria-selected", "false");
    const option = all[at < 0 && step < 0 ? all.length - 1 : next]; // past either end: none, back in the text
    if (!option) return field.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", option.id);
  }
  function take(option) {
    const { start, end } = $("#suggestions").dataset, text = [...field.value];
    const isWhole = option.dataset.more === undefined, rest = text.slice(end).join("");
    const before = text.slice(0, start).join("") + option.dataset.text + (isWhole && !/^[\s,]/.test(rest) ? " " : "");
    field.value = before + rest;
    field.setSelectionRange(before.length, before.length);
    close();
    if (!isWhole) ask(0);
  }

  field.addEventListener("input", () => ask(DELAY_MS));
  field.addEventListener("focus", () => field.value || ask(DELAY_MS));
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], option = chosen();
    if (event.isComposing) return;
    if (step && isOpen()) move(step);
    else if (step === 1) ask(0);
    else if ((event.key === "Enter" || event.key === "Tab") && option) take(option);
    else if (event.key === "Escape") close(); // the browser would also empty the field
    else return;
    event.preventDefault();
  });
  // Keep the focus in the field while somebody presses an option.
  place.addEventListener("mousedown", (event) => event.preventDefault());
  place.addEventListener("click", ({ target }) => {
    const option = target.closest("[role=option]");
    if (option) take(option);
  });

  // --- the menus next to it -----------------------------------------------------------------------------------------
  document.addEventListener("click", ({ target }) => {
    for (const menu of $$("details.menu[open]")) if (!menu.contains(target)) menu.open = false;
  });
  document.addEventListener("keydown", ({ key, target }) => {
    const menu = key === "Escape" && target.closest("details.menu[open]");
    if (!menu) return;
    menu.open = false;
    $("summary", menu).focus();
  });
  document.addEventListener("toggle", async ({ target }) => {
    const paths = target.open && $("[data-paths]:empty", target);
    if (!paths) return;
    const answer = await fetch(paths.dataset.paths, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (answer?.ok) paths.innerHTML = await answer.text();
  }, true);
})();
