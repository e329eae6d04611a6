// The site of web/ in Chromium, driven by Playwright; axe-core checks its accessibility. Every page
// is captured as a screenshot, wide and narrow, light and dark (build/web/pictures).
//   NODE_PATH=packages/node_modules node tests/web/site_test.mjs SITE [NATIVE.json]
// SITE is the folder that scripts/web_site.sh builds; NATIVE.json is the current output of
// native.py.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { axePath, launch, newPage } from "./browser.mjs";
import { serveFiles } from "./serve.mjs";

const axe = readFileSync(axePath(), "utf8");
const [site, native] = process.argv.slice(2);
const tree = fileURLToPath(new URL("../../", import.meta.url));
const pictures = join(tree, "build/web/pictures");
mkdirSync(pictures, { recursive: true });

let passed = 0, failed = 0;
function check(truth, what) {
  if (truth) return ++passed;
  ++failed;
  return console.error(`not so: ${what}`);
}

if (native) {
  const { site: now } = JSON.parse(readFileSync(native, "utf8")), kept = readFileSync(join(tree, "web/native.json"), "utf8");
  check(kept === `${JSON.stringify(now, null, 1)}\n`, "web/native.json is what tests/web/native.py --site prints now");
}

const server = await serveFiles({ "/": site });
const browser = await launch();
const kPages = ["chat", "digits", "evolve", "look", "bits"];

// A window of the site. Requests to another origin, and errors in its console, are failures.
async function open(options) {
  const page = await newPage(browser, options);
  page.on("pageerror", (error) => check(false, `no error in the page: ${error}`));
  page.on("console", (message) => message.type() === "error" && check(false, `a quiet console: ${message.text()}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(server.address) && !/^(data|blob):/.test(url)) check(false, `nothing but its own origin: ${url}`);
  });
  await page.goto(`${server.address}/index.html`);
  return page;
}
const status = (page) => page.locator("main .status").first();
async function says(page, pattern, what) {
  await page.waitForFunction(([text]) => new RegExp(text).test(document.querySelector("main .status")?.textContent ?? ""),
    [pattern.source]).catch(() => undefined);
  check(pattern.test(await status(page).textContent()), `${what}: ${await status(page).textContent()}`);
}
// Controls of one row have one height, and their tops are aligned.
async function aligned(page, name) {
  const uneven = await page.evaluate(() => [...document.querySelectorAll("main .controls, main .row")].filter((row) => {
    const boxes = [...row.querySelectorAll("select, input, button")].map((one) => one.getBoundingClientRect());
    return boxes.some((a) => boxes.some((b) => Math.abs(a.top - b.top) < 20 && (Math.abs(a.top - b.top) > 1 || Math.abs(a.height - b.height) > 1)));
  }).map((row) => row.textContent));
  check(uneven.length === 0, `${name}: the controls are aligned: ${uneven.join("; ")}`);
}
async function accessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const { id, impact, nodes } of violations) check(false, `${name}: axe, ${impact}, ${id}: ${nodes[0].html}`);
  check(violations.length === 0, `${name}: axe finds nothing`);
}

const drives = {
  async chat(page) {
    await page.getByRole("button", { name: "Load the story model" }).click();
    await says(page, /LlamaForCausalLM, 1\.8 million parameters in q8_0/, "the model is loaded");
    await page.getByLabel("Tokens at most").fill("40");
    await page.getByLabel("Temperature").fill("0");
    await page.getByRole("textbox", { name: "Your text" }).press("Enter");
    await says(page, /^\d+ tokens; the first after/, "a text was written");
    const text = await page.getByRole("log").textContent();
    check(/^Once upon a time/.test(text) && text.length > 80, `a story: ${text}`);
    await page.getByLabel("Tokens at most").fill("400");
    // The story takes a fraction of a second, so a script in the page stops it at once.
    await page.evaluate(() => {
      const button = (name) => [...document.querySelectorAll("main button")].find((b) => b.textContent === name);
      button("Send").click();
      button("Stop").click();
    });
    await says(page, /^[0-3] tokens/, "it can be stopped");
    await page.setInputFiles("input[type=file]", { name: "no.entity", mimeType: "", buffer: Buffer.from("no model") });
    await says(page, /no\.entity/, "a damaged file is named");
    check(await page.getByRole("button", { name: "Send" }).isDisabled(), "and nothing can be sent to it");
    await page.setInputFiles("input[type=file]", join(tree, "models/stories.entity"));
    await says(page, /loaded in/, "a file that is chosen is loaded");
    await page.getByLabel("Tokens at most").fill("20");
    await page.getByRole("button", { name: "Send" }).click();
    await says(page, /^\d+ tokens/, "and answers turn by turn");
    check((await page.locator(".said.asked").count()) === 1, "what was asked stands above the answer");
    // This Chromium has no adapter: the model is loaded again, the CPU computes, and the page says
    // why.
    await page.getByLabel("Computed by").selectOption("gpu");
    await says(page, /loaded in .* The CPU computes: /, "an absent GPU is reported");
    await page.getByRole("textbox", { name: "Your text" }).fill("Tell me a story");
    await page.getByRole("button", { name: "Send" }).click();
    await says(page, /^\d+ tokens/, "and the answer comes all the same");
    await page.getByLabel("Computed by").selectOption("cpu");
    await says(page, /loaded in [0-9.]+ s\.$/, "back to the CPU");
  },
  async digits(page) {
    await page.getByLabel("Epochs").fill("3");
    await page.getByRole("button", { name: "Train" }).click();
    await says(page, /^Trained\. Hash of the weights/, "it trains");
    const wanted = JSON.parse(readFileSync(join(tree, "web/native.json"), "utf8")).weights;
    check((await status(page).textContent()).endsWith(wanted), "to the native weights");
    check((await page.locator(".chart .a").getAttribute("points")).split(" ").length > 40, "the curve has points");
    const guess = page.getByRole("status").filter({ hasText: "Draw a digit" });
    check((await guess.count()) === 1 && (await page.getByText(/It sees/).count()) === 0, "an empty pad has no prediction");
    await page.getByRole("button", { name: "Take a test digit" }).click();
    await page.getByText(/It sees a \d/).waitFor();
    ++passed;
    const box = await page.locator(".pad").boundingBox();
    await page.getByRole("button", { name: "Clear" }).click();
    await guess.waitFor();
    check((await page.locator(".chart rect.bar").count()) === 0, "a cleared pad has no prediction");
    await page.mouse.move(box.x + box.width / 2, box.y + 40);
    await page.mouse.down();
    for (let i = 0; i < 20; ++i) await page.mouse.move(box.x + box.width / 2, box.y + 40 + i * 7);
    await page.mouse.up();
    await page.getByText(/It sees a 1/).waitFor().then(() => ++passed,
      () => check(false, "a drawn stroke is a 1"));
  },
  async evolve(page) {
    await page.getByRole("button", { name: "Evolve" }).click();
    await says(page, /^Solved after \d+ generations/, "exclusive or is solved");
    check((await page.locator(".graph circle").count()) >= 5, "the best network is drawn");
    check(/% of the points/.test(await page.locator(".map").getAttribute("aria-label")), "and its answers");
    await page.getByLabel("Task").selectOption("circle");
    await page.getByLabel("Generations at most").fill("8");
    await page.getByRole("button", { name: "Evolve" }).click();
    await says(page, /after 8 generations, 800 networks/, "another task, for some generations");
  },
  async look(page) {
    await page.getByRole("button", { name: "Open the story model" }).click();
    await says(page, /^entity, grid .* parameters, \d+ tensors/, "the file is described");
    check((await page.getByText(/MultiHeadAttention/).count()) >= 4, "its layers stand in a tree");
    await page.getByRole("table").waitFor();
    await page.getByText(/values from .* mean/).waitFor();
    check((await page.locator(".chart .bar").count()) === 48, "values of a tensor are spread over bins");
    const row = page.locator("tbody button").last();
    await row.focus();
    await page.keyboard.press("Enter");
    await page.locator(`[aria-live] code`).first().waitFor();
    ++passed;
  },
  async bits(page) {
    await page.getByRole("button", { name: "Compute and compare" }).click();
    await says(page, /^All 11 have the bits of the native engine/, "the same bits");
    check((await page.locator(".same").count()) === 11, "every line says so");
  },
};

try {
  const wide = await open({ viewport: { width: 1280, height: 900 } });
  check(await wide.evaluate(() => crossOriginIsolated), "the page is isolated");
  for (const name of kPages) {
    await wide.locator(`nav a[href="#${name}"]`).focus();
    await wide.keyboard.press("Enter");
    await wide.locator(`nav a[href="#${name}"][aria-current]`).waitFor();
    ++passed;
    await drives[name](wide);
    await aligned(wide, `${name}, wide`);
    await wide.screenshot({ path: join(pictures, `${name}-wide-light.png`), fullPage: true });
    await accessible(wide, `${name}, light`);
    await wide.emulateMedia({ colorScheme: "dark" });
    await wide.screenshot({ path: join(pictures, `${name}-wide-dark.png`), fullPage: true });
    await accessible(wide, `${name}, dark`);
    await wide.emulateMedia({ colorScheme: "light" });
  }
  const engine = await wide.locator("#engine").textContent();
  check(/Engine: WebAssembly "relaxed-threads"|Engine: WebAssembly "threads"/.test(engine), `it has threads: ${engine}`);

  // A narrow window of a server that does not isolate it.
  const narrow = await open({ viewport: { width: 390, height: 740 }, hasTouch: true, colorScheme: "dark" });
  await narrow.goto(`${server.address}/index.html?alone`);
  for (const name of kPages) {
    await narrow.locator(`nav a[href="#${name}"]`).click();
    if (name === "look" || name === "evolve") await drives[name](narrow);
    const over = await narrow.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(over <= 0, `${name}: nothing is wider than a phone (${over} pixels over)`);
    await aligned(narrow, `${name}, narrow`);
    await narrow.screenshot({ path: join(pictures, `${name}-narrow-dark.png`), fullPage: true });
    await accessible(narrow, `${name}, narrow`);
  }
  check(/One thread: this page is not isolated/.test(await narrow.locator("#engine").textContent()), "it says why it has one thread");
} finally {
  await browser.close();
  server.stop();
}
console.log(`the site in Chromium: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 ? 0 : 1;
