// The log of one pod: its last lines, and those that come.

import { stream } from "./stream.js";

const KEPT = 400_000; // Characters; of what is older the end is on the server.

/** Make the panel show a log without loading the page, and follow it where that is asked for. */
export function logs(panel, api) {
  const form = panel.querySelector("form"), text = panel.querySelector("pre"), box = panel.querySelector("[data-follow] input");
  let stop = () => {};
  panel.querySelector("[data-follow]").hidden = false;

  function add(more) {
    const down = text.scrollHeight - text.scrollTop - text.clientHeight < 40;
    text.append(more);
    if (text.textContent.length > KEPT) text.textContent = text.textContent.slice(-KEPT / 2);
    if (down) text.scrollTop = text.scrollHeight;
  }

  async function show() {
    stop();
    const pod = form.elements.log.value;
    if (!pod) return;
    const path = `${api}/logs/${encodeURIComponent(pod)}`;
    const tail = encodeURIComponent(form.elements.tail.value);
    text.hidden = false;
    text.textContent = "";
    if (box.checked) {
      stop = stream(`${path}/events?tail=${tail}`, {
        // Each connection begins with the last lines.
        open: () => (text.textContent = ""),
        log: (each) => add(`${each.text}\n`),
        end: ({ reason }) => {
          stop();
          if (reason === "rights") add("(your token does not allow this log any more)\n");
        },
      });
      return;
    }
    try {
      const answer = await fetch(`${path}?tail=${tail}`, { headers: { Accept: "application/json" } });
      const found = await answer.json();
      text.textContent = found.text ?? found.error;
      text.scrollTop = text.scrollHeight;
    } catch (error) {
      text.textContent = `The log cannot be read: ${error.message}`;
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  for (const name of ["log", "tail"]) form.elements[name].addEventListener("change", show);
  box.addEventListener("change", show);
}
