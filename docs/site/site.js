// Accessibility of the theme: names for regions, and code that the keyboard can scroll.
function label() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelector(".md-version__current")?.removeAttribute("aria-label");
  for (const code of document.querySelectorAll("pre > code")) code.tabIndex = 0;
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  // Each region of navigation has a name of its own.
  document.querySelectorAll("nav").forEach((nav, i) => {
    if (nav.dataset.named) return;
    nav.dataset.named = "yes";
    const name = nav.getAttribute("aria-label") ?? nav.querySelector("label, a")?.textContent?.trim() ?? "Pages";
    nav.removeAttribute("aria-labelledby");
    nav.setAttribute("aria-label", `${name} (${i + 1})`);
  });
  for (const head of document.querySelectorAll("th:empty")) head.replaceWith(document.createElement("td"));
}
document.addEventListener("DOMContentLoaded", () => {
  label();
  // The theme adds the list of versions and the buttons of code later.
  let waiting = 0;
  new MutationObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(label, 50);
  }).observe(document.body, { childList: true, subtree: true });
});
