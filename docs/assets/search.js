// What is typed as a name of the reference, whole or in part ("Tensor.backward", "backward", "memory.budget"), comes first in
// what the search finds: the index ranks by how often words occur, and every method of Tensor has that word.
(() => {
  const MOST = 4;
  const FIRST = ["Tensor", "torch", "memory", "stores", "optim", "nn"];  // of several, those of the one that is listed first
  const { base } = JSON.parse(document.getElementById("__config").textContent);
  const root = new URL(base.endsWith("/") ? base : base + "/", location);
  let names;

  const plain = (title) => title.replace(/<[^>]*>[^<]*<\/[^>]*>/g, "").trim().replace(/^(rushlight|torch)\.(?=.*\.)/, "");
  const rank = (name) => {
    const owner = FIRST.indexOf(name.split(".")[0]);
    return [name.split(".").length, owner < 0 ? FIRST.length : owner];
  };

  async function load() {
    const found = new Map();
    const index = await (await fetch(new URL("search/search_index.json", root))).json();
    for (const { location: place, title } of index.docs) {
      if (!place.startsWith("reference/") || !place.includes("#")) continue;
      const name = plain(title);
      if (!/^[\w.]+$/.test(name)) continue;
      const parts = name.toLowerCase().split(".");
      for (let k = 0; k < parts.length; k++) {
        const part = parts.slice(k).join(".");
        if (!found.has(part)) found.set(part, new Map());
        if (!found.get(part).has(name)) found.get(part).set(name, place);
      }
    }
    return found;
  }

  const exact = async (typed) => {
    names ??= load();
    const asked = typed.trim().toLowerCase().replace(/\(\)$/, "");
    const known = await names;
    const found = [...(known.get(asked) ?? known.get(asked.replace(/^(rushlight|torch)\./, "")) ?? new Map())];
    const before = ([a], [b]) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1] || a.localeCompare(b);
    return found.sort(before).slice(0, MOST);
  };

  function item([name, place], k) {
    const element = document.createElement("li");
    element.className = "md-search-result__item exact";
    const link = element.appendChild(document.createElement("a"));
    link.className = "md-search-result__link";
    link.href = new URL(place, root).href;
    link.tabIndex = -1;
    const article = link.appendChild(document.createElement("article"));
    article.className = "md-search-result__article md-typeset";
    article.dataset.mdScore = String(1e12 - k);  // Enter follows the highest
    article.appendChild(document.createElement("h2")).textContent = name;
    return element;
  }

  function attend(input, list) {
    const show = async () => {
      const asked = input.value;
      const found = await exact(asked);
      if (asked !== input.value) return;
      const shown = [...list.querySelectorAll(":scope > .exact")];
      const right = found.length === shown.length && found.every(([name], k) => shown[k].textContent === name && list.children[k] === shown[k]);
      if (right) return;
      shown.forEach((element) => element.remove());
      list.prepend(...found.map(item));
    };
    input.addEventListener("input", show);
    new MutationObserver(show).observe(list, { childList: true });
  }

  addEventListener("DOMContentLoaded", () => {
    const input = document.querySelector(".md-search__input");
    const list = document.querySelector(".md-search-result__list");
    if (input && list) attend(input, list);
  });
})();
