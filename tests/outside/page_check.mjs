// The chat page of `loom serve` in Chromium, driven by Playwright; axe-core checks its
// accessibility. Everything is compared with the answers of the server to a client without the
// page.
//   node tests/outside/page_check.mjs LOOM [FOLDER]    FOLDER: for screenshots of the page
import { spawn } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { axePath, launch, newPage } from "../web/browser.mjs";

const axe = readFileSync(axePath(), "utf8");

const [program, pictures] = process.argv.slice(2);
let passed = 0, failed = 0;

async function check(name, body) {
  try {
    await body();
    ++passed;
  } catch (error) {
    ++failed;
    console.error(`${name}: ${error.stack ?? error}`);
  }
  // Open windows take half of the processor time.
  for (const context of browser.contexts()) await context.close();
}

function equal(got, wanted, what) {
  if (got !== wanted) throw new Error(`${what}: got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`);
}

function holds(truth, what) {
  if (!truth) throw new Error(what);
}

// A server at a free port; clients must know `key`.
async function serve(key) {
  const env = { ...process.env, LOOM_API_KEY: key ?? "" };
  const child = spawn(program, ["serve", "models/stories.entity", "--port", "0", "--quiet"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((resolve, reject) => {
    child.stdout.on("data", (data) => resolve(String(data).trim().split(" ").pop()));
    child.on("exit", (code) => reject(new Error(`loom serve ended with ${code}`)));
  });
  return { address, stop: () => child.kill("SIGINT") };
}

async function story(address, max_tokens) {
  const reply = await fetch(`${address}/v1/chat/completions`, {
    method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "Tell me a story." }], seed: 7, temperature: 0.8, max_tokens }),
  });
  return (await reply.json()).choices[0].message.content;
}

// A page with its settings; errors in its log and requests to other addresses are recorded.
async function open(address, options = {}) {
  const page = await newPage(browser, options);
  page.troubles = [];
  page.on("console", (line) => line.type() === "error" && page.troubles.push(line.text()));
  page.on("pageerror", (error) => page.troubles.push(String(error)));
  page.on("request", (asked) => asked.url().startsWith(address) || page.troubles.push(`asked ${asked.url()}`));
  await page.goto(address);
  await page.waitForFunction(() => document.title === "stories.entity" || document.title === "stories" || document.getElementById("status").textContent);
  return page;
}

async function set(page, values) {
  await page.click("#show-settings");
  for (const [id, value] of Object.entries(values)) await page.fill(`#${id}`, String(value));
  await page.locator("#max_tokens").blur();
  await page.click("#show-settings");
}

const ended = (page) => page.waitForFunction(() => document.getElementById("talk").getAttribute("aria-busy") === "false" && document.querySelector("article.assistant"));
const said = (page) => page.locator("article.assistant > div").first().innerText();
const words = (text) => text.split(/\s+/).filter(Boolean).join(" ");

async function ask(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
}

// Events as a server sends them, for replies that a small model does not write.
const stream = (deltas) =>
  deltas.map((delta, i) => `data: ${JSON.stringify({ seed: 1, choices: [{ index: 0, delta, finish_reason: i + 1 === deltas.length ? "stop" : null }] })}\n\n`).join("") + "data: [DONE]\n\n";

async function accessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  equal(violations.map((v) => `${v.id}: ${v.nodes[0].html}`).join("; "), "", "axe");
}

async function photograph(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

async function chat_tests(address) {
  await check("the page writes what other clients get, and regenerates it", async () => {
    const page = await open(address);
    await set(page, { seed: 7, max_tokens: 40 });
    await ask(page, "Tell me a story.");
    await ended(page);
    const wanted = words(await story(address, 40));
    equal(words(await said(page)), wanted, "text");
    await page.click("#again");
    await page.waitForFunction(() => document.querySelectorAll("article.assistant").length === 1);
    await ended(page);
    equal(words(await said(page)), wanted, "regenerated");
    equal(page.troubles.join("; "), "", "troubles");
    await photograph(page, "talk");
    await accessible(page);
  });
  await check("settings last, and a new chat is empty", async () => {
    const page = await open(address);
    await set(page, { seed: 11, max_tokens: 3, system: "Be brief." });
    await ask(page, "Hi");
    await ended(page);
    await page.click("#new");
    equal(await page.locator("article").count(), 0, "turns");
    await page.reload();
    equal(await page.inputValue("#seed"), "11", "seed");
    equal(await page.inputValue("#system"), "Be brief.", "system");
  });
  await check("Escape stops a text, and the next message is answered", async () => {
    const page = await open(address);
    let release;
    const stopped = new Promise((resolve) => { release = resolve; });
    await page.route("**/v1/chat/completions", async (route) => {
      await stopped;
      await route.abort().catch(() => {});
    }, { times: 1 });
    await set(page, { max_tokens: 3 });
    await ask(page, "Wait.");
    await page.waitForSelector("#stop:not([disabled])");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.getElementById("status").textContent === "Stopped.");
    release();
    await ask(page, "Go on.");
    await ended(page);
    equal(await page.locator("article.assistant").count(), 1, "answers");
  });
  await check("probabilities stand at the tokens", async () => {
    const page = await open(address);
    await set(page, { seed: 7, max_tokens: 12 });
    await page.click("#show-settings");
    await page.check("#chances");
    await ask(page, "Tell me a story.");
    await ended(page);
    const tokens = page.locator("article .token");
    holds((await tokens.count()) >= 10, "tokens");
    holds(/%\n/.test(await tokens.first().getAttribute("title")), "title of a token");
    await photograph(page, "chances");
  });
  await check("a file goes into the prompt", async () => {
    const page = await open(address);
    const path = join(tmpdir(), `loom_page_${process.pid}.txt`);
    writeFileSync(path, "a < b & c");
    await page.setInputFiles("#file", path);
    await page.waitForFunction(() => document.getElementById("text").value.includes("a < b & c"));
  });
}

async function shown_tests(address) {
  await check("markdown is shown, and HTML of a model is text", async () => {
    const page = await open(address);
    const text = "# Head\n\n- one **two**\n- `three`\n\n```c\nint a[] = {1};\n```\n\n<img src=x onerror=\"document.title='bad'\"><script>document.title='bad'</script>";
    await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream", body: stream([...text].map((c) => ({ content: c }))) }));
    await ask(page, "<b>Hi</b>");
    await ended(page);
    equal(await page.locator("article.assistant li").count(), 2, "items");
    equal(await page.locator("article.assistant pre code").innerText(), "int a[] = {1};\n", "code");
    equal(await page.locator("article img, article script, article b").count(), 0, "elements of the model's");
    holds((await page.title()) !== "bad", "a script of the model ran");
    await accessible(page);
  });
  await check("reasoning stands apart, tool calls are shown and answered", async () => {
    const page = await open(address);
    const bodies = [];
    await page.route("**/v1/chat/completions", (route) => {
      bodies.push(route.request().postDataJSON());
      const call = [{ role: "assistant", reasoning_content: "Let me look." },
        { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } }] },
        { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] }, { tool_calls: [{ index: 0, function: { arguments: '"Ulm"}' } }] },
        { tool_calls: [{ index: 1, id: "call_2", type: "function", function: { name: "time", arguments: "{}" } }] }];
      route.fulfill({ contentType: "text/event-stream", body: stream(bodies.length === 1 ? call : [{ content: "Rain." }]) });
    });
    await set(page, { tools: '[{"type": "function", "function": {"name": "weather"}}]' });
    await ask(page, "Weather in Ulm?");
    await page.waitForSelector("pre.call");
    equal((await page.locator("pre.call").allInnerTexts()).join(), 'weather({"city":"Ulm"}),time({})', "calls");
    holds((await page.locator("article.assistant details").first().textContent()).includes("Let me look."), "reasoning");
    await ended(page);
    await ask(page, "rain");
    equal(await page.getAttribute("#text", "placeholder"), "What time gave.", "placeholder");
    await ask(page, "noon");
    await page.waitForFunction(() => document.body.innerText.includes("Rain."));
    equal(bodies[0].tools[0].function.name, "weather", "tools");
    equal(JSON.stringify(bodies[1].messages.slice(-2)), JSON.stringify([{ role: "tool", tool_call_id: "call_1", content: "rain" }, { role: "tool", tool_call_id: "call_2", content: "noon" }]), "results");
    await photograph(page, "tools");
  });
  await check("errors of the server are reported", async () => {
    const page = await open(address);
    await set(page, { temperature: -1 });
    await ask(page, "Hi");
    await page.waitForFunction(() => document.getElementById("status").textContent.includes("temperature is -1, must be 0 or more"));
    equal(await page.locator("article.assistant").count(), 0, "answers");
  });
  for (const [name, options] of Object.entries({
    dark: { colorScheme: "dark" }, phone: { viewport: { width: 360, height: 640 }, hasTouch: true },
  })) {
    await check(`nothing keeps people out: ${name}`, async () => {
      const page = await open(address, options);
      await set(page, { max_tokens: 20 });
      await ask(page, "Tell me a story.");
      await ended(page);
      await page.click("#show-settings");
      await accessible(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      holds(wide <= 0, `${wide} pixels beyond the side`);
      await photograph(page, name);
    });
  }
}

async function key_test() {
  const server = await serve("secret");
  await check("a server with a key asks for it", async () => {
    const page = await open(server.address);
    holds((await page.locator("#status").innerText()).includes("key"), "status");
    await page.fill("#key", "secret");
    await page.locator("#key").blur();
    await page.waitForFunction(() => document.getElementById("model").textContent === "stories.entity");
  });
  server.stop();
}

const server = await serve();
const browser = await launch();
try {
  await chat_tests(server.address);
  await shown_tests(server.address);
  await key_test();
  await check("all of the page is at most 150 KB, compressed", async () => {
    const files = ["html", "css", "js"].map((end) => `src/serve/page/page.${end}`);
    const bytes = files.map((path) => gzipSync(readFileSync(path)).length).reduce((a, b) => a + b);
    holds(bytes <= 150000 && statSync(files[2]).size > 0, `${bytes} bytes`);
  });
} finally {
  await browser.close();
  server.stop();
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed > 0 ? 1 : 0;
