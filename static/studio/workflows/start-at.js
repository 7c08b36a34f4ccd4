/* The time of a start is typed in the person's zone, unless another zone was typed beside it. */
(() => {
  "use strict";
  const at = () => document.getElementById("at");
  const zone = () => document.querySelector('[name="at-zone"]');
  // The offset of that day: it changes with summer time.
  const offset = (moment) => {
    const minutes = Math.round(Studio.offset(moment) / 60000);
    const two = (number) => String(Math.floor(number)).padStart(2, "0");
    const size = Math.abs(minutes);
    return minutes === 0 ? "Z" : `${minutes < 0 ? "-" : "+"}${two(size / 60)}:${two(size % 60)}`;
  };
  // The moment at which clocks of the zone show what is typed.
  const typed = () => {
    const clocks = new Date(`${at().value}Z`);
    if (Number.isNaN(clocks.getTime())) return clocks;
    return new Date(clocks - Studio.offset(new Date(clocks - Studio.offset(clocks))));
  };
  const follow = () => {
    const moment = at().value ? typed() : new Date();
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
