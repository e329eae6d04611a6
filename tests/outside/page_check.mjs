// The chat page of `loom serve` in Chromium, driven by Playwright; axe-core checks its
// accessibility. Everything is compared with the answers of the server to a client without the
// page. page_kit.mjs drives the page, page_chats.mjs has the tests of several chats.
//   node tests/outside/page_check.mjs LOOM [FOLDER]    FOLDER: for screenshots of the page
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { branchTests, listTests, modelTest } from "./page_chats.mjs";
import { accessible, ask, browser, check, counts, ended, equal, holds, open, photograph, regenerate, said, serve, set,
  story, stream, words } from "./page_kit.mjs";

async function chat_tests(address) {
  await check("the page writes what other clients get, and regenerates it", async () => {
    const page = await open(address);
    await set(page, { seed: 7, max_tokens: 40 });
    await ask(page, "Tell me a story.");
    await ended(page);
    const wanted = words(await story(address, 40));
    equal(words(await said(page)), wanted, "text");
    const stats = await page.locator("article.assistant .stats").innerText();
    holds(/^\d+ tokens, [\d.]+ tokens\/s, first token after \d+\.\d\d s, seed 7, cut at the token limit$/.test(stats), stats);
    await regenerate(page);
    await ended(page);
    equal(words(await said(page)), wanted, "regenerated");
    equal(await page.locator("article.assistant .count").innerText(), "2 / 2", "versions");
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
  await check("tokens show their probabilities", async () => {
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
    equal(await page.locator("figcaption span").innerText(), "c", "its language");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy the code" }).click();
    await page.waitForFunction(async () => (await navigator.clipboard.readText()) === "int a[] = {1};\n");
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
    equal(await page.getAttribute("#text", "placeholder"), "The result of time", "placeholder");
    await ask(page, "noon");
    await page.waitForFunction(() => document.body.innerText.includes("Rain."));
    equal(bodies[0].tools[0].function.name, "weather", "tools");
    equal(JSON.stringify(bodies[1].messages.slice(-2)), JSON.stringify([{ role: "tool", content: "rain", tool_call_id: "call_1" }, { role: "tool", content: "noon", tool_call_id: "call_2" }]), "results");
    await photograph(page, "tools");
  });
  await check("errors of the server are reported", async () => {
    const page = await open(address);
    await set(page, { temperature: -1 });
    await ask(page, "Hi");
    await page.waitForFunction(() => document.getElementById("status").textContent.includes("temperature is -1, must be 0 or more"));
    equal(await page.locator("article.assistant").count(), 0, "answers");
  });
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 1280]) {
      await check(`everyone can use it: ${colorScheme}, ${width} pixels`, () => look(address, colorScheme, width));
    }
  }
}

const kSample = `Here is a function, and what it needs:

\`\`\`python
def area(width: float, height: float) -> float:
    return width * height  # a comment that is long enough to be wider than a phone
\`\`\`

1. Call \`area(2, 3)\`.
2. **Check** the result:
   - it is 6
   - it is a *float*

| width | height | area |
|---|---:|---:|
| 2 | 3 | 6 |
| 4 | 5 | 20 |

> See [the manual](https://example.com/manual).
`;

async function look(address, colorScheme, width) {
  const page = await open(address, { colorScheme, viewport: { width, height: 800 }, hasTouch: width < 600 });
  await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream",
    body: stream([{ reasoning_content: "A short one." }, { content: kSample }]) }));
  const name = `${colorScheme}-${width}`;
  const fits = async () => {
    const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    holds(over <= 0, `${over} pixels beyond the side`);
    await accessible(page);
  };
  await photograph(page, `empty-${name}`);
  await fits();
  await ask(page, "Write a function that computes the area of a rectangle, and show how to call it.");
  await ended(page);
  await photograph(page, `chat-${name}`);
  await fits();
  await page.click("#show-settings");
  await photograph(page, `settings-${name}`);
  await fits();
  await page.click("#show-settings");
  if (width > 600) return;
  await page.click("#show-chats");
  await photograph(page, `list-${name}`);
  await fits();
}

async function key_test() {
  const server = await serve(["models/stories.entity"], "secret");
  await check("a server with a key asks for it", async () => {
    const page = await open(server.address);
    holds((await page.locator("#status").innerText()).includes("key"), "status");
    await page.fill("#key", "secret");
    await page.locator("#key").blur();
    await page.waitForFunction(() => document.getElementById("model").value === "stories.entity");
  });
  server.stop();
}

const server = await serve(["models/stories.entity"]);
try {
  await chat_tests(server.address);
  await shown_tests(server.address);
  await listTests(server.address);
  await branchTests(server.address);
  await key_test();
  await modelTest();
  await check("all of the page is at most 30 KB, compressed", async () => {
    const folder = "src/serve/page";
    const bytes = readdirSync(folder).map((name) => gzipSync(readFileSync(join(folder, name))).length).reduce((a, b) => a + b);
    holds(bytes <= 30000, `${bytes} bytes`);
  });
} finally {
  await browser.close();
  server.stop();
}
console.log(`${counts.passed} passed, ${counts.failed} failed, 0 skipped`);
process.exitCode = counts.failed > 0 ? 1 : 0;
