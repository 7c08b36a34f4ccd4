/* A file is read here and put into the text: what is sent is what one sees. */
(() => {
  "use strict";
  const file = document.getElementById("file");
  const text = document.getElementById("text");
  const problem = document.getElementById("file-problem");
  if (!file) return;
  const most = Number(text.dataset.most);
  async function read() {
    const [one] = file.files;
    problem.textContent = "";
    if (!one) return;
    if (one.size > most) {
      problem.textContent = `It has ${one.size.toLocaleString("en")} bytes; the limit is ${most.toLocaleString("en")}.
        Split it.`;
      return;
    }
    try {
      text.value = new TextDecoder("utf-8", { fatal: true }).decode(await one.arrayBuffer());
    } catch {
      problem.textContent = "It is not UTF-8. Save it as UTF-8 (in a spreadsheet: CSV UTF-8) and choose it again.";
    }
  }
  file.addEventListener("change", read);
  if (!text.value) read(); // one may have been chosen before this was loaded
})();
