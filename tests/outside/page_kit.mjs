// Drives the chat page of `loom serve` for page_check.mjs.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { axePath, launch, newPage } from "../web/browser.mjs";

const axe = readFileSync(axePath(), "utf8");
const [program, pictures] = process.argv.slice(2);

export const browser = await launch();
export const counts = { passed: 0, failed: 0 };

export async function check(name, body) {
  try {
    await body();
    ++counts.passed;
  } catch (error) {
    ++counts.failed;
    console.error(`${name}: ${error.stack ?? error}`);
  }
  // Open windows take half of the processor time.
  for (const context of browser.contexts()) await context.close();
}

export function equal(got, wanted, what) {
  if (got !== wanted) throw new Error(`${what}: got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`);
}

export function holds(truth, what) {
  if (!truth) throw new Error(what);
}

// A server at a free port; clients must know `key`.
export async function serve(models, key = "") {
  const env = { ...process.env, LOOM_API_KEY: key };
  const child = spawn(program, ["serve", ...models, "--port", "0", "--quiet"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((resolve, reject) => {
    child.stdout.on("data", (data) => resolve(String(data).trim().split(" ").pop()));
    child.on("exit", (code) => reject(new Error(`loom serve ended with ${code}`)));
  });
  return { address, stop: () => child.kill("SIGINT") };
}

export async function story(address, max_tokens) {
  const reply = await fetch(`${address}/v1/chat/completions`, {
    method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "Tell me a story." }], seed: 7, temperature: 0.8, max_tokens }),
  });
  return (await reply.json()).choices[0].message.content;
}

// A page with its settings; errors in its log and requests to other addresses are recorded.
export async function open(address, options = {}) {
  const page = await newPage(browser, options);
  page.troubles = [];
  page.on("console", (line) => line.type() === "error" && page.troubles.push(line.text()));
  page.on("pageerror", (error) => page.troubles.push(String(error)));
  page.on("request", (asked) => asked.url().startsWith(address) || page.troubles.push(`asked ${asked.url()}`));
  await page.goto(address);
  await ready(page);
  return page;
}

// The page has the models, or says why not.
export const ready = (page) => page.waitForFunction(() =>
  document.querySelector("#model option") !== null || document.getElementById("status").textContent !== "");

export async function set(page, values) {
  await page.click("#show-settings");
  for (const [id, value] of Object.entries(values)) await page.fill(`#${id}`, String(value));
  await page.locator("#max_tokens").blur();
  await page.click("#show-settings");
}

export const ended = (page) => page.waitForFunction(() =>
  document.getElementById("talk").getAttribute("aria-busy") === "false" && document.querySelector("article.assistant"));
export const said = (page) => page.locator("article.assistant > .body").last().innerText();
export const words = (text) => text.split(/\s+/).filter(Boolean).join(" ");
export const turns = async (page) => (await page.locator("article > .body").allInnerTexts()).map(words);
export const titles = (page) => page.locator("#chats .open").allInnerTexts();

export async function ask(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
}
export const regenerate = (page) => page.getByRole("button", { name: "Regenerate this reply" }).last().click();

// Events as a server sends them, for replies that a small model does not write.
export const stream = (deltas) =>
  deltas.map((delta, i) => `data: ${JSON.stringify({ seed: 1, choices: [{ index: 0, delta, finish_reason: i + 1 === deltas.length ? "stop" : null }] })}\n\n`).join("") + "data: [DONE]\n\n";

// Replies "1: LAST MESSAGE", "2: ..." in the order of requests.
export async function echo(page) {
  let count = 0;
  await page.route("**/v1/chat/completions", (route) => {
    const { messages } = route.request().postDataJSON();
    route.fulfill({ contentType: "text/event-stream", body: stream([{ content: `${++count}: ${messages.at(-1).content}` }]) });
  });
}

export async function accessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  equal(violations.map((v) => `${v.id}: ${v.nodes[0].html}`).join("; "), "", "axe");
}

export async function photograph(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}
