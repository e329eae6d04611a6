// Elements of the page. Text of a model never becomes HTML: it goes into text nodes.
import { parseMarkdown } from "./markdown.mjs";

export const $ = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export const button = (text, click, properties = {}) =>
  element("button", { type: "button", onclick: click, ...properties }, text);

// The clipboard of pages without TLS is a selection that the document copies.
export async function copy(text) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = element("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("the browser does not allow copying");
}

// A button that copies, and says so for a moment.
export function copyButton(text, label) {
  const say = (words, name) => {
    made.textContent = words;
    made.setAttribute("aria-label", name);
  };
  const made = button("Copy", async () => {
    const words = await copy(text()).then(() => "Copied", () => "Not copied");
    say(words, words);
    setTimeout(say, 1500, "Copy", label);
  }, { "aria-label": label });
  return made;
}

// ---- markdown

function inlineNode(part) {
  if (typeof part === "string") return part;
  const { kind, text, inline, address } = part;
  if (kind === "code") return element("code", {}, text);
  if (kind !== "link") return element(kind, {}, ...inline.map(inlineNode));
  const where = { href: address, title: address, target: "_blank", rel: "noopener noreferrer" };
  return element("a", where, ...inline.map(inlineNode));
}
const inlineNodes = (inline) => inline.map(inlineNode);

function codeNode({ language, text }) {
  // A keyboard can scroll the block.
  const block = element("pre", { tabindex: 0, "aria-label": "Code" }, element("code", {}, text));
  const bar = element("figcaption", {}, element("span", {}, language || "text"),
    copyButton(() => text, "Copy the code"));
  return element("figure", { class: "code" }, bar, block);
}

function tableNode({ head, align, rows }) {
  const row = (name, cells) => element("tr", {}, ...cells.map((cell, i) =>
    element(name, { class: align[i] ?? "left" }, ...inlineNodes(cell))));
  return element("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Table" },
    element("table", {}, element("thead", {}, row("th", head)),
      element("tbody", {}, ...rows.map((cells) => row("td", cells)))));
}

function listNode({ ordered, start, items }) {
  const tight = (blocks) => blocks.flatMap((block, i) =>
    block.kind === "paragraph" && i === 0 ? inlineNodes(block.inline) : [blockNode(block)]);
  const nodes = items.map((blocks) => element("li", {}, ...tight(blocks)));
  return element(ordered ? "ol" : "ul", { start: ordered && start !== 1 ? start : undefined },
    ...nodes);
}

function blockNode(block) {
  switch (block.kind) {
    case "code": return codeNode(block);
    case "heading":
      return element("h3", { class: `level${block.level}` }, ...inlineNodes(block.inline));
    case "list": return listNode(block);
    case "quote": return element("blockquote", {}, ...block.blocks.map(blockNode));
    case "table": return tableNode(block);
    case "rule": return element("hr");
    default: return element("p", {}, ...inlineNodes(block.inline));
  }
}

// Shows markdown. Blocks that did not change stay, so that selections survive a stream.
export function showMarkdown(to, text) {
  const blocks = parseMarkdown(text), keys = blocks.map((block) => JSON.stringify(block));
  const before = to.blockKeys ?? [];
  let same = 0;
  while (same < keys.length && keys[same] === before[same]) ++same;
  while (to.childNodes.length > same) to.lastChild.remove();
  to.append(...blocks.slice(same).map(blockNode));
  to.blockKeys = keys;
}

// ---- turns

const kNames = { user: "You", assistant: "Model", tool: "Result of a tool" };

// A token with its probability, and its alternatives in the tooltip.
function tokenNode(entry) {
  const percent = (logprob) => Math.exp(logprob) * 100;
  const node = element("span", { class: "token" }, entry.token);
  node.style.setProperty("--sure", `${Math.round(percent(entry.logprob))}%`);
  node.title = entry.top_logprobs
    .map((one) => `${JSON.stringify(one.token)} ${percent(one.logprob).toFixed(1)} %`).join("\n");
  return node;
}

// A turn on the page. `acts` has the buttons below it: [[text, label, click], ...].
export class TurnView {
  #body = element("div", { class: "body" });
  #calls = element("div");
  #thinking = element("div");
  #thought = element("details", { hidden: true }, element("summary", {}, "Reasoning"),
    this.#thinking);
  #stats = element("span", { class: "stats" });
  constructor(turn, acts, versions) {
    this.turn = turn;
    const name = kNames[turn.role] + (turn.model ? ` · ${turn.model}` : "");
    const buttons = acts.map(([text, label, click]) =>
      button(text, click, { "aria-label": label }));
    const bar = element("footer", {}, ...versions, copyButton(() => turn.content, "Copy this turn"),
      ...buttons, this.#stats);
    const isReply = turn.role === "assistant";
    const parts = isReply ? [this.#thought, this.#body, this.#calls] : [this.#body];
    this.article = element("article", { class: turn.role }, element("h2", {}, name), ...parts, bar);
    this.show([]);
  }
  show(tokens) {
    const { role, content, reasoning, tool_calls: calls, stats } = this.turn;
    if (role !== "assistant") this.#body.textContent = content;
    else if (tokens.length > 0) this.#body.replaceChildren(...tokens.map(tokenNode));
    else showMarkdown(this.#body, content);
    this.#thought.hidden = !reasoning;
    if (reasoning) this.#thinking.textContent = reasoning;
    this.#calls.replaceChildren(...(calls ?? []).map((call) =>
      element("pre", { class: "call" }, `${call.function.name}(${call.function.arguments})`)));
    this.#stats.textContent = stats ?? "";
  }
  // Replaces the text by a field. `done` gets the new text, or null.
  edit(done) {
    const field = element("textarea", { rows: 3, "aria-label": "Edit the message" });
    field.value = this.turn.content;
    const end = (text) => {
      form.replaceWith(this.#body);
      done(text);
    };
    const send = element("button", { type: "submit", class: "main" }, "Send");
    const form = element("form", { class: "edit" }, field,
      element("div", { class: "row" }, button("Cancel", () => end(null)), send));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      end(field.value.trim() || null);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        end(null);
      }
      if (!isSend(event)) return;
      event.preventDefault();
      form.requestSubmit();
    });
    this.#body.replaceWith(form);
    field.focus();
  }
}

export const isSend = (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing;
