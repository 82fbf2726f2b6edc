// The page of one run: what the server has rendered becomes live.

import { actions } from "./actions.js";
import { bind } from "./bind.js";
import { Curve } from "./curves.js";
import { logs } from "./log.js";
import { stream } from "./stream.js";

const root = document.getElementById("run"), notice = document.getElementById("notice"), api = root.dataset.run;
const bound = root.dataset.bound ? Number(root.dataset.bound) : null;
const curves = {};
for (const figure of root.querySelectorAll("[data-curve]")) {
  curves[figure.dataset.curve] = new Curve(figure, figure.dataset.curve === "accuracy" ? bound : null, Number(root.dataset.until));
}

const OF_EVENT = { step: ["loss", "steps_per_second"], evaluate: ["accuracy"] };
const number = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
const set = (path, text) => {
  const place = root.querySelector(`[data-text="${path}"]`);
  if (place && place.textContent !== text) place.textContent = text;
};

function line(event) {
  // A program that is not ours may leave out what it likes.
  if (typeof event.step !== "number") return;
  for (const tag of OF_EVENT[event.event] ?? []) {
    if (typeof event[tag] === "number") curves[tag].add(event.step, event[tag], event.time ?? 0);
  }
  if (event.event === "step") {
    const total = event.steps_total ? ` of ${event.steps_total.toLocaleString("en-US")}` : "";
    set("shown.step", event.step.toLocaleString("en-US") + total);
    if (typeof event.loss === "number") set("shown.loss", number(event.loss));
    if (typeof event.steps_per_second === "number") set("shown.rate", event.steps_per_second.toLocaleString("en-US", { maximumSignificantDigits: 3 }));
    const bar = root.querySelector("[data-value=step]");
    if (bar) bar.value = event.step;
  }
  if (event.event === "evaluate" && typeof event.accuracy === "number") set("shown.accuracy", `${(100 * event.accuracy).toFixed(1)} %`);
}

function say(text, bad = false) {
  notice.textContent = text;
  notice.hidden = !text;
  notice.classList.toggle("bad", bad);
}

// What this page sees of its stream, what that one says of the API server, and what the server has said of a page that it had
// kept, which holds until there is something newer.
let lost = "", told = "", kept = notice.dataset.kept ? notice.textContent : "";
const tell = () => say(lost || told || kept);
const at = (time) => `${time.slice(11, 19)} UTC`;

async function overlay() {
  const answer = await fetch(`${api}/attempts`);
  if (!answer.ok) return;
  const { attempts } = await answer.json();
  const earlier = attempts.filter((each) => each.name !== root.dataset.attempt);
  for (const [tag, curve] of Object.entries(curves)) curve.overlay(earlier.map((each) => each.curves[tag] ?? []));
}

actions(root, notice);
logs(document.getElementById("log"), api);
if (root.dataset.board) overlay().catch(() => {});

/** The buttons fit a run that goes on, or one that has ended. */
async function redraw() {
  const answer = await fetch(location.pathname, { headers: { "X-Console-Refresh": "1" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  root.querySelector(".push").replaceWith(page.querySelector(".push"));
  actions(root.querySelector(".push"), notice);
}

const stop = stream(`${api}/events`, {
  line,
  open: () => {
    if (!lost) return;
    lost = "";
    tell();
  },
  lost: () => {
    if (lost) return;
    lost = `This page is not up to date (since ${at(new Date().toISOString())}). It is asked for again.`;
    tell();
  },
  run: (view) => {
    if (kept) {
      kept = "";
      tell();
    }
    bind(root, view);
    const over = view.over ? "yes" : "no";
    if (over !== root.dataset.over) redraw().catch(() => {});
    root.dataset.over = over;
  },
  notice: (each) => {
    told = each.text ? `${each.text} (since ${at(each.since)})` : "";
    tell();
  },
  end: ({ reason }) => {
    stop();
    // Without a login the page leads there.
    if (reason === "login") location.reload();
    else say("This page is no longer live: your token does not allow it any more.", true);
  },
});
