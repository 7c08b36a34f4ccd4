/* The time of a start is typed in the zone of the browser, unless another zone was typed beside it. */
(() => {
  "use strict";
  const at = () => document.getElementById("at");
  const zone = () => document.querySelector('[name="at-zone"]');
  // The offset of that day: it changes with summer time.
  const offset = (moment) => {
    const minutes = -moment.getTimezoneOffset();
    const two = (number) => String(Math.floor(number)).padStart(2, "0");
    const size = Math.abs(minutes);
    return minutes === 0 ? "Z" : `${minutes < 0 ? "-" : "+"}${two(size / 60)}:${two(size % 60)}`;
  };
  const follow = () => {
    const moment = at().value ? new Date(at().value) : new Date();
    if (!Number.isNaN(moment.getTime())) zone().value = offset(moment);
  };
  if (!at()) return;
  let isTyped = Boolean(at().value);
  if (!isTyped) follow();
  // Before the form asks for its check.
  document.addEventListener(
    "input",
    ({ target }) => {
      if (target.name === "at-zone") isTyped = true;
      else if (target.id === "at" && !isTyped) follow();
    },
    true,
  );
})();
