/* Where rows come and go, keep what somebody points at or types into where it is: scroll by as much as it has moved. */
(() => {
  "use strict";
  const { $ } = Studio;
  const PLACES = [":is(input, select, textarea):focus", ":is(tr, .groups > li):hover", ":focus"];
  let held = null, top = 0;
  function isInView(node) {
    const box = node?.getBoundingClientRect();
    return box && box.bottom > 0 && box.top < innerHeight;
  }

  document.addEventListener("htmx:before:swap", () => {
    held = PLACES.map((place) => $(`[data-steady] ${place}`)).find(isInView);
    if (held) top = held.getBoundingClientRect().top;
  });
  document.addEventListener("htmx:after:swap", () => {
    const moved = held?.isConnected ? held.getBoundingClientRect().top - top : 0;
    held = null;
    if (!moved) return;
    const page = $(".page"); // it may be too short to scroll
    page.style.alignContent = "start";
    page.style.minHeight = `${moved + innerHeight - page.getBoundingClientRect().top}px`;
    scrollBy({ top: moved, behavior: "instant" });
  });
})();
