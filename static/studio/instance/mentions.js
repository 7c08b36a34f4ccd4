/* The field of a note: whom to mention, while somebody types `@`. It is loaded when somebody goes to the field
   (forms.js); without it, names are typed in full. */
(() => {
  "use strict";
  const { $, $$ } = Studio;
  const DELAY_MS = 120;
  // The characters of Django's user names. An `@` inside a word belongs to an e-mail address.
  const BEGUN = /(?<![\p{L}\p{N}_@.+-])@([\p{L}\p{N}_@.+-]{0,150})$/u;
  const field = $("[data-people]");
  if (!field) return;
  const place = $("#people-place");
  let timer = 0, asking = null;
  const style = { rel: "stylesheet", href: field.dataset.style };
  document.head.append(Object.assign(document.createElement("link"), style));
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-haspopup", "listbox");

  const options = () => $$("[role=option]", place);
  const chosen = () => $("[aria-selected=true]", place);
  function begun() {
    const { selectionStart: at, selectionEnd } = field;
    return at === selectionEnd ? BEGUN.exec(field.value.slice(0, at)) : null;
  }

  function ask() {
    clearTimeout(timer);
    asking?.abort();
    if (begun()) timer = setTimeout(fetchThem, DELAY_MS);
    else close();
  }
  async function fetchThem() {
    const name = begun()?.[1];
    if (name === undefined) return close();
    const mine = (asking = new AbortController());
    const given = { signal: mine.signal, headers: { "HX-Request": "true" } };
    const about = new URLSearchParams({ begins: name });
    const answer = await fetch(`${field.dataset.people}?${about}`, given).catch(() => null);
    const html = answer?.ok ? await answer.text().catch(() => "") : "";
    if (mine.signal.aborted) return;
    if (document.activeElement !== field || begun()?.[1] !== name) return close();
    place.innerHTML = html;
    const found = options();
    // A name that is typed in full needs no list.
    if (!found.length || (found.length === 1 && found[0].dataset.name === name)) return close();
    place.hidden = false;
    field.setAttribute("aria-controls", "people");
    choose(found[0]);
  }
  function close() {
    clearTimeout(timer);
    asking?.abort();
    place.hidden = true;
    place.replaceChildren();
    for (const name of ["aria-controls", "aria-activedescendant"]) field.removeAttribute(name);
  }
  function choose(option) {
    chosen()?.setAttribute("aria-selected", "false");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", option.id);
  }
  function move(step) {
    const all = options();
    choose(all[(all.indexOf(chosen()) + step + all.length) % all.length]);
  }
  function take(option) {
    const found = begun();
    if (!found) return close();
    const rest = field.value.slice(field.selectionStart);
    const name = option.dataset.name + (/^[\s.,;:!?)]/.test(rest) ? "" : " ");
    field.setRangeText(name, found.index + 1, field.selectionStart, "end");
    close();
  }

  field.addEventListener("input", ask);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (place.hidden || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) move(step);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) take(chosen());
    else if (event.key === "Escape") close();
    else return /^(Arrow|Home|End|Page)/.test(event.key) ? close() : undefined;
    event.preventDefault();
  });
  // Keep the focus in the field while somebody presses an option.
  place.addEventListener("mousedown", (event) => event.preventDefault());
  place.addEventListener("click", ({ target }) => {
    const option = target.closest("[role=option]");
    if (option) take(option);
  });
  ask(); // what was typed while this was loaded
})();
