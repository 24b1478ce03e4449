// Names for what the theme leaves without one, and the keyboard's way into what scrolls sideways.
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
document.querySelectorAll("pre > code").forEach((code) => code.setAttribute("tabindex", "0"));
const name = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav, k) => nav.setAttribute("aria-label", `Code ${nav.parentElement?.id || k}`));
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((wrap) => wrap.setAttribute("tabindex", "0"));
};
name();
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });  // the theme adds its buttons later
