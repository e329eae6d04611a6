/** The pages by their names in the address; each is made when it is first shown, and kept. */

import { bitsPage } from "./bits";
import { chatPage } from "./chat";
import { digitsPage } from "./digits";
import { evolvePage } from "./evolve";
import { lookPage } from "./look";

const pages: Record<string, () => HTMLElement> = {
  chat: chatPage,
  digits: digitsPage,
  evolve: evolvePage,
  look: lookPage,
  bits: bitsPage,
};
const made = new Map<string, HTMLElement>();
const main = document.getElementById("content") as HTMLElement;

function show(moved: boolean): void {
  const asked = location.hash.slice(1);
  if (asked === "content") return void main.focus();
  const name = asked in pages ? asked : "chat";
  let page = made.get(name);
  if (page === undefined) {
    page = (pages[name] as () => HTMLElement)();
    made.set(name, page);
  }
  main.replaceChildren(page);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page.querySelector("h2")?.textContent ?? ""} · Loom in the browser`;
  if (moved) main.focus();
}

addEventListener("hashchange", () => show(true));
show(false);
