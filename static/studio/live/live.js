/* One socket for each page, its state shown truthfully, and a slow poll for what the socket may have missed. */
(() => {
  "use strict";
  const { $, $$, clock, isReconcile } = Studio;
  const WORDS = { connecting: "Connecting", live: "Live", offline: "Offline", done: "Finished", out: "Signed out" };
  let heard = Date.now(), retryAt = 0, lost = false;
  let connection = null;
  const LONGEST_MS = 20000; // between two attempts to connect

  function state(name) {
    document.body.dataset.live = name;
    for (const dot of $$(".live")) {
      dot.dataset.state = name;
      $("span", dot).textContent = dot.title = WORDS[name];
    }
    const bar = $("#offline");
    if (bar) bar.hidden = !(name === "offline" || name === "out");
    if (bar && name === "out") $("#offline-text").textContent = "You are signed out. Sign in again to continue.";
    if (name === "live") lost = false;
  }
  function lose() {
    lost = true;
    state("offline");
    explain();
  }
  function explain() {
    if (document.body.dataset.live !== "offline") return;
    const left = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    const [what, next] = !navigator.onLine ? ["This device is offline", "waiting for its network"]
      : isSilent() ? ["No response from the server", "trying again…"]
      : ["Connection lost", left ? `reconnecting in ${left} s` : "reconnecting…"];
    $("#offline-text").textContent = `${what} · showing ${clock(new Date(heard))} · ${next}`;
  }
  setInterval(explain, 500);

  const reconnect = (Studio.reconnect = () => {
    const old = $("#live");
    if (!old || document.body.dataset.live === "live") return;
    const fresh = old.cloneNode(false);
    old.replaceWith(fresh);
    htmx.process(fresh);
  });
  document.addEventListener("htmx:ws:before:connection", ({ detail }) => {
    connection = detail.connection;
    // Our own jitter, drawn once for each page: so the bar knows when the next attempt comes.
    connection.config.reconnectJitter = 0;
    connection.config.reconnectDelay = connection.studioDelay ??= 400 + Math.random() * 400;
    connection.config.reconnectMaxDelay = LONGEST_MS;
    connection.config.reconnectCodes = [1001, 1005, 1006, 1011, 1012, 1013, 1014, 4011];
    const { attempt, studioDelay } = connection;
    retryAt = Date.now() + (attempt ? Math.min(studioDelay * 2 ** (attempt - 1), LONGEST_MS) : 0);
    triedAt = Math.max(retryAt, Date.now());
    unanswered = 0;
    if (!lost) state("connecting");
  });
  document.addEventListener("htmx:ws:after:connection", () => state("live"));
  document.addEventListener("htmx:ws:close", ({ detail: { code, reason } }) => {
    if (reason === "removed" || document.hidden) return;
    if (code === 1000) return;
    if (code === 4000) return state("done");
    if (code === 4401) return comeBack();
    lose();
  });

  // The socket's session has ended, but the browser may have a new one, for example after a password change. Reopen the
  // socket without reloading the page, so that nothing typed is lost. Only once until a message arrives: an open socket
  // proves nothing.
  let cameBack = false;
  async function comeBack() {
    const where = $("#reconcile")?.getAttribute("hx-get");
    const headers = { "HX-Request": "true" };
    const answer = cameBack || !where ? null : await fetch(where, { headers }).catch(() => null);
    if (!answer?.ok) return state("out");
    cameBack = true;
    state("connecting");
    reconnect();
  }

  // --- a server that hangs keeps its sockets open: only an answer shows that it is alive ---------------------------
  const BEAT = "beat", BEAT_MS = 2000, SILENT_MS = 3500, GIVE_UP_MS = 15000;
  let unanswered = 0, triedAt = 0; // since when a beat waits for its answer, and the socket for its opening
  const isSilent = () => unanswered > 0 && Date.now() - unanswered > SILENT_MS;
  function beat() {
    const socket = connection?.socket;
    if (document.hidden) unanswered = 0;
    else if (socket?.readyState === WebSocket.OPEN) {
      if (isSilent()) lose();
      if (unanswered && Date.now() - unanswered > GIVE_UP_MS) return reconnect();
      unanswered ||= Date.now();
      socket.send(BEAT);
    } else if (socket?.readyState === WebSocket.CONNECTING && Date.now() - triedAt > GIVE_UP_MS) reconnect();
    else if (socket?.readyState === WebSocket.CONNECTING && Date.now() - triedAt > SILENT_MS) lose();
  }
  setInterval(beat, BEAT_MS);
  document.addEventListener("htmx:ws:before:message:incoming", (event) => {
    heard = Date.now();
    unanswered = 0;
    cameBack = false;
    if (lost && navigator.onLine) state("live");
    if (event.detail.message.data === BEAT) event.preventDefault();
  });

  const isOpen = () => connection?.socket?.readyState === WebSocket.OPEN;
  addEventListener("offline", () => {
    if ($("#live") && document.body.dataset.live !== "done") lose();
  });
  addEventListener("online", () => {
    unanswered = 0;
    explain();
    if (isOpen()) beat();
    else reconnect();
  });
  addEventListener("DOMContentLoaded", () => {
    if (!$("#live")) for (const dot of $$(".live")) dot.hidden = true;
    else if (!navigator.onLine) lose();
  });
  // The browser may restore a cached page: its socket is closed.
  addEventListener("pageshow", (event) => {
    if (event.persisted) reconnect();
  });
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-retry]")) reconnect();
  });

  // --- poll for what the socket may have missed: slowly while it is live, faster while it is not ------------------
  const ask = () => $("#reconcile")?.dispatchEvent(new CustomEvent("studio:tick"));
  // A finished instance has no socket but can be restarted: check when somebody returns to the page.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && document.body.dataset.live === "done") ask();
  });
  let lastAsked = Date.now();
  setInterval(() => {
    const live = document.body.dataset.live;
    if (document.hidden || live === "out") return;
    if (Date.now() - lastAsked < (live === "live" || live === "done" ? 45000 : 15000)) return;
    lastAsked = Date.now();
    ask();
  }, 1000);
  document.addEventListener("htmx:after:request", ({ detail }) => {
    if (isReconcile(detail) && detail.ctx.response?.status < 400) heard = Date.now();
  });

  // What the page asks for by itself never leads away from it: only a press does.
  document.addEventListener("htmx:before:response", (event) => {
    const { response, sourceElement } = event.detail.ctx;
    if (response.status !== 401 || !sourceElement?.matches("[hx-trigger*='studio:']")) return;
    event.preventDefault();
    state("out");
  });

  // An answer can be older than what the socket has sent since, and the socket does not send that again. So ask it for
  // everything once more.
  document.addEventListener("htmx:finally:request", ({ detail }) => {
    const paints = detail?.ctx?.sourceElement?.matches?.("#reconcile, form[method=post]");
    if (paints && isOpen()) connection.socket.send("painted");
  });
})();
