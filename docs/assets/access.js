// Names for what the theme leaves without one, and the keyboard's way into what scrolls sideways.
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
// Parts of the table of contents bear the names of sections of the site, which are landmarks too.
document.querySelectorAll(".md-nav--secondary nav[aria-label]").forEach((nav) => nav.setAttribute("aria-label", `On this page: ${nav.getAttribute("aria-label")}`));
const name = () => {
  document.querySelectorAll("pre > code:not([tabindex])").forEach((code) => code.setAttribute("tabindex", "0"));
  document.querySelectorAll(".md-code__nav").forEach((nav, k) => nav.ariaLabel ??= `Code ${k + 1}`);
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((wrap) => wrap.setAttribute("tabindex", "0"));
};
name();
// The theme adds its buttons later, and takes the keyboard's way out of code wherever there is no mouse.
new MutationObserver(name).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["tabindex"] });
