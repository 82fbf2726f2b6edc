// Pages that show a list: what is marked `data-live` is fetched anew while the page is seen.

const EVERY_MS = 5000;
const notice = document.getElementById("notice");

async function refresh() {
  if (document.hidden) return;
  let page;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html", "X-Console-Refresh": "1" }, redirect: "manual" });
    // A redirect leads to the login.
    if (answer.type === "opaqueredirect" || answer.status === 401) return location.reload();
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok) throw new Error(page.querySelector("h1")?.textContent ?? `status ${answer.status}`);
  } catch (error) {
    notice.textContent = `This page is not up to date: ${error.message}. It is asked for again.`;
    notice.hidden = false;
    return;
  }
  const said = page.getElementById("notice");
  notice.textContent = said?.textContent ?? "";
  notice.hidden = said?.hidden ?? true;
  for (const part of document.querySelectorAll("[data-live]")) {
    const anew = page.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
    // Whoever is in there with the keyboard stays there.
    if (anew && anew.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(anew);
  }
}

setInterval(refresh, EVERY_MS);
document.addEventListener("visibilitychange", refresh);
