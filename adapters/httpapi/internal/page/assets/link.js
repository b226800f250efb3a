// What is nicer with a script. Every page works without it.
"use strict";
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));

  // A list that narrows while the person types.
  const search = document.querySelector("[data-filter]");
  if (search) {
    const items = all(".sources li"), list = document.querySelector(".sources");
    const empty = document.querySelector(".empty"), count = document.querySelector("[data-count]");
    const came = search.value.trim().toLowerCase();
    search.addEventListener("input", () => {
      const want = search.value.trim().toLowerCase();
      if (!want.includes(came)) { search.form.requestSubmit(); return; } // the page has only some
      let n = 0;
      for (const li of items) {
        li.hidden = !li.dataset.name.toLowerCase().includes(want);
        if (!li.hidden) n++;
      }
      if (list) list.hidden = n === 0;
      empty.hidden = n > 0;
      count.textContent = count.dataset.count.replace("{n}", n);
    });
  }
  for (const select of all("[data-submit]")) {
    // A keyboard runs through the choices: wait until one is chosen.
    select.addEventListener("change", () => { if (!select.matches(":focus-visible")) select.form.requestSubmit(); });
  }

  // One press is enough, and something happens.
  for (const el of all("[data-busy]")) {
    el.addEventListener(el.tagName === "A" ? "click" : "submit", (e) => {
      if (el.dataset.gone) { e.preventDefault(); return; }
      el.dataset.gone = "1";
      const button = el.tagName === "A" ? el : el.querySelector("button");
      button.dataset.words = button.textContent;
      button.textContent = el.dataset.busy;
      button.setAttribute("aria-busy", "true");
    });
  }
  window.addEventListener("pageshow", (e) => {
    if (!e.persisted) return;
    for (const el of all("[data-gone]")) {
      delete el.dataset.gone;
      const button = el.matches("a") ? el : el.querySelector("button");
      button.textContent = button.dataset.words;
      button.removeAttribute("aria-busy");
    }
  });

  // The first problem of a form gets the focus.
  document.querySelector("[aria-invalid]")?.focus();

  // The first import, drawn anew while it runs.
  const refresh = () => {
    const at = document.querySelector("[data-refresh]");
    if (!at) return;
    setTimeout(async () => {
      try {
        const answer = await fetch(location.href, { credentials: "same-origin" });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const next = page.getElementById("import");
        if (next) {
          const words = at.querySelector("[role=status]"), news = next.querySelector("[role=status]");
          const bar = at.querySelector("progress"), newBar = next.querySelector("progress");
          if (bar && newBar && next.hasAttribute("data-refresh")) {
            bar.value = newBar.value; bar.max = newBar.max;
            if (words.textContent !== news.textContent) words.textContent = news.textContent;
          } else {
            at.replaceWith(next);
          }
        }
      } catch { /* the network is away; the next turn asks again */ }
      refresh();
    }, Number(at.dataset.refresh) * 1000);
  };
  refresh();

  // A phone that connects while this page waits.
  const wait = document.querySelector("[data-wait]");
  if (wait) {
    const look = async () => {
      try {
        const answer = await fetch(wait.dataset.wait + "&look=1", { credentials: "same-origin" });
        if (answer.ok && (await answer.text()).trim() === "arrived") {
          location.assign(wait.dataset.wait);
          return;
        }
      } catch { /* as above */ }
      setTimeout(look, 3000);
    };
    setTimeout(look, 3000);
  }

  // Whoever embeds or opened the pages is told, if the host trusts its origin.
  const body = document.body.dataset;
  if (body.event) {
    const above = window.parent !== window ? window.parent : window.opener;
    for (const origin of (body.origins || "").split(" ").filter(Boolean)) {
      above?.postMessage({ source: "link", event: body.event, provider: body.provider, error_type: body.error }, origin);
    }
  }
  if (document.querySelector("[data-close]")) window.close();
})();
