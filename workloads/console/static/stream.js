// A stream of events that a tab has only while somebody sees it: browsers allow six connections to one server.

const AGAIN_MS = 3000;

/**
 * Listen to server-sent events while the page is visible.
 * @param {string} path of the stream
 * @param {Object<string, function(object)>} on - what to do with the JSON of each type, and when it opens (`open`)
 * @returns {function()} ends it
 */
export function stream(path, on) {
  let source = null, last = "", ended = false, timer = 0;

  function open() {
    if (source || ended || document.hidden) return;
    source = new EventSource(last ? `${path}?after=${encodeURIComponent(last)}` : path);
    for (const [type, act] of Object.entries(on).filter(([type]) => type !== "open")) {
      source.addEventListener(type, (event) => {
        last = event.lastEventId || last;
        act(JSON.parse(event.data || "{}"));
      });
    }
    source.onopen = () => on.open?.();
    // The browser tries again by itself after a broken connection, and never after an answer that is no stream.
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      close();
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
