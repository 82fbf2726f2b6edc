// Sets what the server has rendered anew from the same view as JSON. Text stays text: nothing here makes markup.

const at = (view, path) => path.split(".").reduce((found, key) => found?.[key], view);
const said = (value) => (value === null || value === undefined ? "" : String(value));

/** Elements below `root` with an attribute, but for those in a list, which are bound with their own entry. */
function* own(root, attribute) {
  for (const element of root.querySelectorAll(`[${attribute}]`)) {
    const list = element.parentElement.closest("[data-each]");
    if (!list || list === root || !root.contains(list)) yield element;
  }
}

const TONES = ["good", "busy", "wait", "bad", "idle"];

/** Set what `data-text`, `data-href`, `data-value`, `data-tone` and `data-each` name, from a view. */
export function bind(root, view) {
  for (const element of own(root, "data-text")) {
    let text = said(at(view, element.dataset.text));
    if (element.dataset.text === "state") text = text.replaceAll("_", " ");
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of own(root, "data-href")) {
    const href = said(at(view, element.dataset.href));
    // A path of this console and nothing else, whatever the view says.
    if (href.startsWith("/") && new URL(href, location).origin === location.origin) element.href = href;
  }
  for (const element of own(root, "data-value")) element.value = Number(at(view, element.dataset.value) ?? 0);
  for (const element of own(root, "data-tone")) {
    element.classList.remove(...TONES);
    element.classList.add(at(view, element.dataset.tone) || "idle");
  }
  for (const list of own(root, "data-each")) {
    const entries = at(view, list.dataset.each);
    if (Array.isArray(entries)) fill(list, entries);
  }
}

/** One clone of the list's template for each entry; the rows that are there are used again, so that nobody's place in
 * the page is lost. */
function fill(list, entries) {
  const template = list.querySelector(":scope > template");
  const rows = [...list.children].filter((each) => each !== template);
  entries.forEach((entry, index) => {
    const row = rows[index] ?? template.content.firstElementChild.cloneNode(true);
    if (!rows[index]) list.insertBefore(row, template);
    bind(row, entry);
  });
  rows.slice(entries.length).forEach((row) => row.remove());
}
