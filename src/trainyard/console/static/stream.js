// A stream of events that a tab has only while somebody sees it: browsers allow six connections to one server.

const AGAIN_MS = 3000;
const OWN = ["open", "lost"];

/** An event source does not say which answer it got. Without a login the page leads there. */
async function login() {
  const answer = await fetch("/api/v1/session", { headers: { "X-Console-Refresh": "1" } }).catch(() => null);
  if (answer?.status === 401) location.reload();
}

/**
 * Listen to server-sent events while the page is visible.
 * @param {string} path of the stream
 * @param {Object<string, function(object)>} on - what to do with the JSON of each type, when it opens (`open`), and
 *   when it is broken (`lost`), until it opens again
 * @returns {function()} ends it
 */
export function stream(path, on) {
  let source = null, last = "", ended = false, timer = 0;

  function open() {
    if (source || ended || document.hidden) return;
    source = new EventSource(last ? `${path}?after=${encodeURIComponent(last)}` : path);
    for (const [type, act] of Object.entries(on).filter(([type]) => !OWN.includes(type))) {
      source.addEventListener(type, (event) => {
        last = event.lastEventId || last;
        act(JSON.parse(event.data || "{}"));
      });
    }
    source.onopen = () => on.open?.();
    // The browser tries again by itself after a broken connection, and never after an answer that is no stream.
    source.onerror = () => {
      on.lost?.();
      if (source?.readyState !== EventSource.CLOSED) return;
      close();
      login();
      timer = setTimeout(open, AGAIN_MS);
    };
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  const look = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", close);
  addEventListener("pageshow", look);
  open();
  return () => {
    ended = true;
    close();
    document.removeEventListener("visibilitychange", look);
  };
}
