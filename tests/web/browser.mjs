// Chromium without a window, driven by Playwright, for every test of a page. NODE_PATH names the folder of the packages.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.NODE_PATH, "package.json"));
const { chromium } = require("playwright-core");

// The path of the axe-core script, which checks accessibility.
export const axePath = () => require.resolve("axe-core/axe.min.js");

// The limit of a wait for an event that does not come. It is not a measure: other work may share
// the processor.
export const kDeadline = 300000;

const kQuiet = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync", "--disable-background-networking",
  "--disable-component-update"];

export function launch(args = ["--disable-gpu"]) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: [...kQuiet, ...args], timeout: kDeadline });
}

// A page in a separate context.
export async function newPage(browser, options = {}) {
  const page = await (await browser.newContext(options)).newPage();
  page.setDefaultTimeout(kDeadline);
  return page;
}
