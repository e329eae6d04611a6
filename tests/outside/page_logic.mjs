// The logic of the chat page of `loom serve` in Node.js: chats, requests, events and markdown.
//   node tests/outside/page_logic.mjs
import { deepStrictEqual as same, strictEqual as equal, throws } from "node:assert";

import { addTurn, ChatStore, dropTurn, exportText, forkOf, importChats, messagesOf, newChat, PageStorage, pathOf,
  showBranch, titleOf, versionsOf, waitingCalls } from "../../src/serve/page/chats.mjs";
import { addEvent, EventReader, Meter, requestOf } from "../../src/serve/page/client.mjs";
import { parseInline, parseMarkdown } from "../../src/serve/page/markdown.mjs";

const user = (content) => ({ role: "user", content });
const model = (content) => ({ role: "assistant", content });
const call = (id, name) => ({ id, type: "function", function: { name, arguments: "{}" } });

// A question with two answers, the second of which has a further turn.
function branched() {
  const chat = newChat({ system: "Be brief." }, "a.gguf");
  addTurn(chat, user("one\ntwo"));
  addTurn(chat, model("first"));
  addTurn(chat, model("second"), 0);
  addTurn(chat, user("more"));
  return chat;
}

const markdown = [
  ["a paragraph keeps its lines", "a\nb\n\nc", [{ kind: "paragraph", inline: ["a\nb"] }, { kind: "paragraph", inline: ["c"] }]],
  ["a fence has a language", "~~~py\nx\n```\n~~~\nend", [{ kind: "code", language: "py", text: "x\n```\n" }, { kind: "paragraph", inline: ["end"] }]],
  ["an open fence goes to the end", "```\n# x", [{ kind: "code", language: "", text: "# x\n" }]],
  ["three backticks with text after them are code of the line", "```a b``` c", [{ kind: "paragraph", inline: [{ kind: "code", text: "a b" }, " c"] }]],
  ["headings have levels", "## A ##\n# B", [{ kind: "heading", level: 2, inline: ["A"] }, { kind: "heading", level: 1, inline: ["B"] }]],
  ["a rule is no list", "a\n\n* * *", [{ kind: "paragraph", inline: ["a"] }, { kind: "rule" }]],
  ["lists nest, and have code", "3. a\n   - b\n4. c\n\n   ```\n   d\n   ```", [{ kind: "list", ordered: true, start: 3, items: [
    [{ kind: "paragraph", inline: ["a"] }, { kind: "list", ordered: false, start: 1, items: [[{ kind: "paragraph", inline: ["b"] }]] }],
    [{ kind: "paragraph", inline: ["c"] }, { kind: "code", language: "", text: "d\n" }]] }]],
  ["a quote has blocks", "> # a\n> b\nc", [{ kind: "quote", blocks: [{ kind: "heading", level: 1, inline: ["a"] }, { kind: "paragraph", inline: ["b"] }] },
    { kind: "paragraph", inline: ["c"] }]],
  ["a table has columns", "|a|b|\n|---|--:|\n|1|2|", [{ kind: "table", head: [["a"], ["b"]], align: ["left", "right"], rows: [[["1"], ["2"]]] }]],
  ["HTML is text", "<img src=x>", [{ kind: "paragraph", inline: ["<img src=x>"] }]],
];

const inline = [
  ["code, strong and soft", "a `b*` **c *d*** _e_", ["a ", { kind: "code", text: "b*" }, " ", { kind: "strong", inline: ["c ", { kind: "em", inline: ["d"] }] }, " ", { kind: "em", inline: ["e"] }]],
  ["strong with code", "**a `b`**", [{ kind: "strong", inline: ["a ", { kind: "code", text: "b" }] }]],
  ["strong and soft together", "***a***", [{ kind: "strong", inline: [{ kind: "em", inline: ["a"] }] }]],
  ["names with underscores stay", "a_b_c 2 * 3 * 4", ["a_b_c 2 * 3 * 4"]],
  ["links of the web", "[a](https://b.c/d) https://e.f.", [{ kind: "link", inline: ["a"], address: "https://b.c/d" }, " ",
    { kind: "link", inline: ["https://e.f"], address: "https://e.f" }, "."]],
  ["no other addresses", "[a](javascript:alert(1)) [b](data:text/html,x)", ["[a](javascript:alert(1)) [b](data:text/html,x)"]],
];

const refused = [
  ["{", /not JSON/], ["{}", /has no chats/], ['{"loom_chats":1,"chats":[{}]}', /chats\[0\]\.turns is not a list/],
  ['{"loom_chats":1,"chats":[{"turns":[{"role":"system"}]}]}', /turns\[0\]\.role must be/],
  ['{"loom_chats":1,"chats":[{"turns":[{"role":"user","content":1}]}]}', /content is not a text/],
  ['{"loom_chats":1,"chats":[{"turns":[{"role":"user","content":"","parent":0}]}]}', /parent must be an earlier turn/],
  ['{"loom_chats":1,"chats":[{"turns":[{"role":"user","content":"","parent":-1,"tool_calls":[{}]}]}]}', /tool_calls needs id/],
];

// Letters of a text, in any order: a parser of markdown may move no text out of sight.
const lettersOf = (text) => [...text].filter((one) => /[a-zé]/.test(one)).sort().join("");
function textOf(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(textOf).join("");
  return Object.entries(value).map(([key, part]) => ["inline", "text", "language", "blocks", "items", "head", "rows"].includes(key) ? textOf(part) : "").join("");
}
const pieces = ["*", "**", "_", "`", "```", "~~", "> ", "- ", "1. ", "# ", "---", "\n", "\n\n", "    ", "a", "word ", "é", "<b>", "\\"];
// The words after the language of a fence are not shown.
const dropsWords = /(^|\n|> |- |\d\. )\s*(```|~~~)[`~]*\s*\S+[ \t]+\S/;

const tests = {
  "random markdown keeps every letter"() {
    let state = 1;
    const below = (n) => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return Math.floor(state / 2147483648 * n);
    };
    for (let i = 0; i < 5000; ++i) {
      let text = "";
      for (let left = 1 + below(14); left > 0; --left) text += pieces[below(pieces.length)];
      if (!dropsWords.test(text)) equal(lettersOf(textOf(parseMarkdown(text))), lettersOf(text), JSON.stringify(text));
    }
  },
  "turns are a tree, and the newest branch is shown"() {
    const chat = branched();
    same(pathOf(chat), [0, 2, 3]);
    same(versionsOf(chat, 1), [1, 2]);
    showBranch(chat, 1);
    same(pathOf(chat), [0, 1]);
    showBranch(chat, 2);
    same(pathOf(chat), [0, 2, 3]);
    equal(titleOf(chat), "one");
  },
  "a dropped turn leaves its parent"() {
    const chat = branched();
    dropTurn(chat);
    same(pathOf(chat), [0, 2]);
  },
  "a fork has the turns of its branch alone"() {
    const fork = forkOf(branched(), 2);
    same(fork.turns.map((turn) => turn.content), ["one\ntwo", "second"]);
    equal(fork.title, "one (fork)");
  },
  "messages begin with the system prompt"() {
    const roles = messagesOf(branched(), 2).map(({ role, content }) => `${role}: ${content}`);
    same(roles, ["system: Be brief.", "user: one\ntwo", "assistant: second"]);
  },
  "calls without a result wait"() {
    const chat = newChat();
    addTurn(chat, user("a"));
    addTurn(chat, { ...model(""), tool_calls: [call("1", "x"), call("2", "y")] });
    addTurn(chat, { role: "tool", tool_call_id: "1", content: "z" });
    same(waitingCalls(chat).map(({ id }) => id), ["2"]);
  },
  "an exported chat is read back with another id"() {
    const chat = branched(), [read] = importChats(exportText([chat]));
    equal(read.id === chat.id, false);
    same({ ...read, id: "" }, { ...chat, id: "" });
  },
  "damaged files are refused in one line"() {
    for (const [text, pattern] of refused) throws(() => importChats(text), { message: pattern });
  },
  "chats are stored one by one, and damage is skipped"() {
    const storage = new PageStorage(), store = new ChatStore(storage);
    const [a, b] = [{ ...branched(), changed: 1 }, { ...branched(), changed: 2 }];
    equal(store.save(a) && store.save(b), true);
    storage.setItem("loom.chat.bad", "{");
    storage.setItem("other", "1");
    same(store.all().map(({ id }) => id), [b.id, a.id]);
    store.remove(b.id);
    same(store.load(a.id), a);
    store.settings = { ...store.settings, seed: "7" };
    equal(store.settings.seed, "7");
    storage.setItem = () => { throw new Error("full"); };
    equal(store.save(b), false);
  },
  "two tabs that change one chat both keep their turns"() {
    const storage = new PageStorage(), [one, two] = [new ChatStore(storage), new ChatStore(storage)];
    const a = branched();
    one.save(a);
    const b = two.load(a.id);
    two.remember(b);
    const reply = a.turns[addTurn(a, model(""))];
    one.save(a);
    reply.content = "a long reply"; // which is still on its way
    addTurn(b, user("of the other tab"));
    equal(two.merge(b), true);
    same(b.turns.map(({ content, parent }) => [content, parent]).slice(3), [["more", 2], ["", 3], ["of the other tab", 3]]);
    equal(b.leaf, 5);
    two.save(b);
    equal(one.merge(a), true);
    equal(a.turns[4], reply);
    one.save(a);
    equal(one.merge(a), false);
    equal(two.merge(b), true);
    same(b.turns, a.turns);
    equal(b.turns[4].content, "a long reply");
    same(a.turns[5], { ...user("of the other tab"), parent: 3 });
    equal(a.leaf, 4);
    two.save(b);
    dropTurn(a); // its last turn has a follower in the storage
    equal(one.merge(a), false);
  },
  "a request has the settings that are set"() {
    const chat = branched();
    Object.assign(chat.settings, { seed: "7", top_k: "0", max_tokens: "", chances: true, tools: "[]" });
    const [path, body] = requestOf(chat, 3, { model: "m", hasTemplate: true });
    equal(path, "v1/chat/completions");
    same({ ...body, messages: body.messages.length }, { model: "m", stream: true, stream_options: { include_usage: true },
      temperature: 0.8, top_k: 0, seed: 7, logprobs: true, top_logprobs: 4, tools: [], messages: 4 });
    same(requestOf(chat, 3, { model: "m", hasTemplate: false })[1].prompt, "more");
    chat.settings.tools = "{";
    throws(() => requestOf(chat, 3, { model: "m", hasTemplate: true }), /^Error: Tools is not JSON/);
  },
  "events come in pieces of any size"() {
    const text = 'id: 1\ndata: {"a": 1}\n\n: ping\n\ndata: {"a": "\\n"}\n\ndata: [DONE]\n\n';
    for (const size of [1, 7, 1000]) {
      const reader = new EventReader(), found = [];
      for (let at = 0; at < text.length; at += size) found.push(...reader.read(text.slice(at, at + size)));
      same(found, [{ a: 1 }, { a: "\n" }]);
    }
  },
  "fragments of calls and reasoning are joined"() {
    const turn = model("");
    const deltas = [{ reasoning_content: "a" }, { reasoning_content: "b" }, { content: "c" },
      { tool_calls: [{ index: 0, id: "1", function: { name: "f", arguments: "{" } }] },
      { tool_calls: [{ index: 0, function: { arguments: "}" } }] }];
    for (const delta of deltas) addEvent(turn, { choices: [{ delta }] });
    same(turn, { ...model("c"), reasoning: "ab", tool_calls: [call("1", "f")] });
  },
  "tokens and speed have the words of the field"() {
    const meter = new Meter(1000);
    for (const now of [1210, 1310, 1410]) meter.event({ seed: 7, choices: [{ delta: { content: "a" } }] }, now);
    equal(meter.line(), "3 tokens, 10.0 tokens/s, first token after 0.21 s, seed 7");
    meter.event({ choices: [{ delta: {}, finish_reason: "length" }] }, 1500);
    meter.event({ choices: [], usage: { completion_tokens: 142 }, timings: { predicted_per_second: 38.12 } }, 1500);
    equal(meter.line(), "142 tokens, 38.1 tokens/s, first token after 0.21 s, seed 7, cut at the token limit");
  },
  "deep nesting and odd texts end"() {
    for (const text of ["> ".repeat(20000), "- ".repeat(20000), "*".repeat(20000), "`".repeat(9999) + "a", "[".repeat(20000), "|\n".repeat(9999)])
      equal(parseMarkdown(text).length > 0, true);
  },
};
for (const [name, text, wanted] of markdown) tests[`markdown: ${name}`] = () => same(parseMarkdown(text), wanted);
for (const [name, text, wanted] of inline) tests[`markdown: ${name}`] = () => same(parseInline(text), wanted);

let passed = 0, failed = 0;
for (const [name, body] of Object.entries(tests)) {
  try {
    body();
    ++passed;
  } catch (error) {
    ++failed;
    console.error(`${name}: ${error.message}`);
  }
}
console.log(`the logic of the chat page: ${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed === 0 ? 0 : 1;
