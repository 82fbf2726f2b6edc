// Stop, continue, restart and delete without leaving the page; without this script the forms do the same.

/** Send the forms of a page's actions and show what came of them. */
export function actions(root, notice) {
  for (const form of root.querySelectorAll("form[data-action]")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const fields = new FormData(form), session = fields.get("session");
      fields.delete("session");
      const button = form.querySelector("button");
      button.disabled = true;
      let said, bad = false;
      try {
        const answer = await fetch(form.action, {
          method: "POST",
          headers: { "X-Console-Session": session, Accept: "application/json" },
          body: new URLSearchParams(fields),
        });
        const found = await answer.json();
        bad = !answer.ok;
        said = found.message ?? found.error;
      } catch (error) {
        bad = true;
        said = `The console did not answer: ${error.message}`;
      }
      button.disabled = false;
      form.closest("details").open = false;
      notice.textContent = said;
      notice.classList.toggle("bad", bad);
      notice.hidden = false;
    });
  }
  // One menu at a time, and Escape closes it.
  const menus = root.querySelectorAll("details.menu");
  for (const menu of menus) {
    menu.addEventListener("toggle", () => menu.open && menus.forEach((each) => each !== menu && (each.open = false)));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
}
