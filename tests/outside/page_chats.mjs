// Tests of page_check.mjs: the list of chats, branches of a chat, and several models.
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ask, check, echo, ended, equal, holds, open, ready, regenerate, serve, set, titles, turns } from "./page_kit.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });
const rename = async (page, from, to) => {
  await button(page, `Rename ${from}`).click();
  await page.getByLabel("Title of the chat").fill(to);
  await page.keyboard.press("Enter");
};

export async function listTests(address) {
  await check("chats are stored, renamed, deleted and restored", async () => {
    const page = await open(address);
    await echo(page);
    await ask(page, "First\nof all");
    await ended(page);
    await page.click("#new");
    await ask(page, "Second");
    await ended(page);
    equal((await titles(page)).join(), "Second,First", "titles");
    await page.reload();
    await ready(page);
    equal((await turns(page)).join(), "Second,2: Second", "the chat after a reload");
    await button(page, "First").click();
    equal((await turns(page)).join(), "First of all,1: First of all", "the other chat");
    await rename(page, "First", "Renamed");
    equal(await page.locator("h1").innerText(), "Renamed", "heading");
    await button(page, "Delete Renamed").click();
    equal((await titles(page)).join(), "Second", "titles after deletion");
    await button(page, "Undo").click();
    equal((await titles(page)).sort().join(), "Renamed,Second", "titles after undo");
    equal((await turns(page)).length, 2, "turns after undo");
  });
  await check("exported chats are imported elsewhere, damaged files are refused in one line", async () => {
    const page = await open(address);
    await echo(page);
    await ask(page, "Keep this");
    await ended(page);
    const [file] = await Promise.all([page.waitForEvent("download"), button(page, "Export all").click()]);
    const path = join(tmpdir(), `loom_chats_${process.pid}.json`);
    writeFileSync(path, readFileSync(await file.path()));
    const other = await open(address);
    await other.setInputFiles("#import", path);
    await button(other, "Keep this").click();
    equal((await turns(other)).join(), "Keep this,1: Keep this", "turns");
    writeFileSync(path, '{"loom_chats": 1, "chats": [{"turns": [{"role": "user", "content": "a", "parent": 7}]}]}');
    await other.setInputFiles("#import", path);
    await other.waitForFunction(() => document.getElementById("status").textContent === "chats[0].turns[0].parent must be an earlier turn, or -1");
    equal((await titles(other)).length, 1, "chats");
  });
  await check("settings belong to a chat, and a new chat begins with them", async () => {
    const page = await open(address);
    await echo(page);
    await set(page, { system: "Be brief.", top_k: 5 });
    await ask(page, "One");
    await ended(page);
    await page.click("#new");
    equal(await page.inputValue("#system"), "Be brief.", "system prompt of a new chat");
    await set(page, { system: "Be kind." });
    await ask(page, "Two");
    await ended(page);
    await button(page, "One").click();
    equal(await page.inputValue("#system"), "Be brief.", "system prompt of the first chat");
    equal(await page.inputValue("#top_k"), "5", "top-k");
  });
}

export async function branchTests(address) {
  await check("an edited message is a branch, and both stay reachable", async () => {
    const page = await open(address);
    await echo(page);
    await ask(page, "Red");
    await ended(page);
    await ask(page, "More");
    await ended(page);
    await button(page, "Edit this message").first().click();
    await page.getByLabel("Edit the message").fill("Blue");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.body.innerText.includes("3: Blue"));
    equal((await turns(page)).join(), "Blue,3: Blue", "the new branch");
    await button(page, "Earlier version").click();
    equal((await turns(page)).join(), "Red,1: Red,More,2: More", "the old branch");
    await regenerate(page);
    await page.waitForFunction(() => document.body.innerText.includes("4: More"));
    await button(page, "Earlier version").last().click();
    equal((await turns(page)).at(-1), "2: More", "the old reply");
    await page.reload();
    await ready(page);
    equal((await turns(page)).at(-1), "2: More", "the branch after a reload");
    holds(await button(page, "Later version").first().isEnabled(), "the other branch is reachable");
  });
  await check("a fork is a chat of its own", async () => {
    const page = await open(address);
    await echo(page);
    await ask(page, "Red");
    await ended(page);
    await ask(page, "More");
    await ended(page);
    await button(page, "Fork the chat here").nth(1).click();
    equal((await turns(page)).join(), "Red,1: Red", "turns of the fork");
    await ask(page, "Less");
    await page.waitForFunction(() => document.body.innerText.includes("3: Less"));
    equal((await titles(page)).join(), "Red (fork),Red", "titles");
    await button(page, "Red").click();
    equal((await turns(page)).length, 4, "turns of the first chat");
  });
  await check("a message without an answer can be answered later", async () => {
    const page = await open(address);
    await page.route("**/v1/chat/completions", (route) => route.abort(), { times: 1 });
    await ask(page, "Hi");
    await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("the server does not answer"));
    equal(await page.locator("article.assistant").count(), 0, "answers");
    await echo(page);
    await button(page, "Answer this message").click();
    await ended(page);
    equal((await turns(page)).join(), "Hi,1: Hi", "turns");
  });
}

export async function modelTest() {
  const server = await serve(["models/stories.entity", "models/stories-draft.entity"]);
  await check("a chat is answered by the model that it chose", async () => {
    const page = await open(server.address);
    await set(page, { max_tokens: 2 });
    await page.selectOption("#model", "stories-draft.entity");
    await ask(page, "Tell me a story.");
    await ended(page);
    equal(await page.locator("article.assistant h2").innerText(), "Model · stories-draft.entity", "its model");
    await page.click("#new");
    await page.selectOption("#model", "stories.entity");
    await page.locator("#chats .open").first().click();
    equal(await page.inputValue("#model"), "stories-draft.entity", "the model of the first chat");
  });
  await check("a model that is loaded by a message may continue texts", async () => {
    const page = await open(server.address);
    let loaded = "unloaded";
    await page.route("**/v1/models", (route) => route.fulfill({ json: { data: [{ id: "base", status: { value: loaded } }] } }));
    await page.route("**/props?model=base", (route) => route.fulfill({ json: { has_chat_template: false } }));
    await page.route("**/v1/chat/completions", (route) => {
      loaded = "loaded";
      route.fulfill({ status: 400, json: { error: { message: "no chat template" } } });
    });
    await page.route("**/v1/completions", (route) => route.fulfill({ contentType: "text/event-stream",
      body: `data: ${JSON.stringify({ choices: [{ text: `${route.request().postDataJSON().prompt} more` }] })}\n\n` }));
    await page.reload();
    await ready(page);
    await ask(page, "Some");
    await ended(page);
    equal((await turns(page)).join(), "Some,Some more", "turns");
    await page.unrouteAll();
  });
  server.stop();
}
