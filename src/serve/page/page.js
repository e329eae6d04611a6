// The page of `loom serve`: a chat over /v1/chat/completions. Text of a model never becomes HTML:
// elements are made here and text goes into them.
"use strict";

const $ = (id) => document.getElementById(id);
const kept = ["system", "tools", "temperature", "seed", "max_tokens", "chances"];
let turns = []; // messages as the server reads them
let answering = null; // an AbortController
let chats = true; // false: the model has no chat template, and goes on with texts

const element = (name, text, type) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (type) made.className = type;
  return made;
};

// `code`, **strong** and *soft* inside a line.
function inline(to, text) {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/);
  for (const part of parts) {
    if (/^`.+`$/.test(part)) to.append(element("code", part.slice(1, -1)));
    else if (/^\*\*.+\*\*$/.test(part)) to.append(element("strong", part.slice(2, -2)));
    else if (/^\*.+\*$/.test(part)) to.append(element("em", part.slice(1, -1)));
    else to.append(part);
  }
}

// Markdown as models write it: fences, headings, lists, paragraphs.
function markdown(to, text) {
  to.replaceChildren();
  let list = null, fence = null, lines = [];
  const paragraph = () => {
    if (lines.length) inline(to.appendChild(element("p")), lines.join("\n"));
    lines = [];
  };
  for (const line of text.split("\n")) {
    if (fence) {
      if (line.startsWith("```")) fence = null;
      else fence.append(line + "\n");
      continue;
    }
    const item = line.match(/^\s*(?:([-*])|(\d+)\.)\s+(.*)/);
    const heading = line.match(/^(#{1,6})\s+(.*)/);
    if (item || heading || !line.trim() || line.startsWith("```")) paragraph();
    if (!item) list = null;
    if (line.startsWith("```")) {
      const block = to.appendChild(element("pre"));
      block.tabIndex = 0; // so that a keyboard can scroll it
      fence = block.appendChild(element("code"));
    } else if (heading) {
      inline(to.appendChild(element("h3")), heading[2]);
    } else if (item) {
      list ??= to.appendChild(element(item[1] ? "ul" : "ol"));
      inline(list.appendChild(element("li")), item[3]);
    } else if (line.trim()) {
      lines.push(line);
    }
  }
  paragraph();
}

const names = { user: "You", assistant: "Model", tool: "Result of a tool" };

// The parts of a turn on the page: what the model thought, what it said, the tools it calls.
function bubble(turn) {
  const article = element("article", undefined, turn.role);
  article.append(element("h2", names[turn.role]));
  const thought = element("details");
  thought.append(element("summary", "Reasoning"));
  thought.hidden = true;
  const thinking = thought.appendChild(element("div"));
  const body = element("div");
  const calls = element("div");
  if (turn.role === "assistant") article.append(thought, body, calls);
  else article.append(body);
  body.textContent = turn.content;
  $("talk").append(article);
  article.scrollIntoView({ block: "end" });
  return { article, thought, thinking, body, calls };
}

// Each token with its probability, and what else was likely, where the pointer rests.
function token(to, entry) {
  const share = Math.exp(entry.logprob);
  const span = element("span", entry.token, "token");
  span.style.setProperty("--sure", `${Math.round(share * 100)}%`);
  span.title = entry.top_logprobs
    .map((t) => `${JSON.stringify(t.token)} ${(Math.exp(t.logprob) * 100).toFixed(1)} %`).join("\n");
  to.append(span);
}

function headers() {
  const out = { "Content-Type": "application/json" };
  if ($("key").value) out.Authorization = `Bearer ${$("key").value}`;
  return out;
}

// The JSON of each event as it comes.
async function* events(body, signal) {
  const path = chats ? "/v1/chat/completions" : "/v1/completions";
  const reply = await fetch(path, { method: "POST", headers: headers(), signal, body: JSON.stringify(body) });
  if (!reply.ok) throw new Error((await reply.json()).error.message);
  let rest = "";
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const pieces = (rest + part.value).split("\n\n");
    rest = pieces.pop();
    for (const piece of pieces) {
      if (!piece.startsWith("data: {")) continue;
      const event = JSON.parse(piece.slice(6));
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

function request() {
  const body = { stream: true, temperature: Number($("temperature").value), max_tokens: Number($("max_tokens").value) };
  if (Number($("seed").value) >= 0) body.seed = Number($("seed").value);
  if (!chats) return { ...body, prompt: turns.at(-1).content };
  if ($("chances").checked) Object.assign(body, { logprobs: true, top_logprobs: 4 });
  if ($("tools").value.trim()) body.tools = JSON.parse($("tools").value);
  const system = $("system").value.trim();
  return { ...body, messages: system ? [{ role: "system", content: system }, ...turns] : turns };
}

function busy(yes) {
  $("talk").setAttribute("aria-busy", String(yes));
  $("stop").disabled = !yes;
  $("send").disabled = yes;
  $("again").disabled = yes || turns.at(-1)?.role !== "assistant";
}

// Tool calls come in fragments, separated by their index.
function add_calls(turn, fragments, to) {
  turn.tool_calls ??= [];
  for (const part of fragments) {
    const call = (turn.tool_calls[part.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
    if (part.id) call.id = part.id;
    call.function.name += part.function?.name ?? "";
    call.function.arguments += part.function?.arguments ?? "";
  }
  to.replaceChildren(...turn.tool_calls.map((c) => element("pre", `${c.function.name}(${c.function.arguments})`, "call")));
}

// One event of the stream: into the turn, and onto the page.
function take(event, turn, place, chances) {
  const choice = event.choices[0];
  if (!choice) return "";
  const delta = chats ? choice.delta : { content: choice.text };
  if (delta.reasoning_content) {
    place.thought.hidden = false;
    place.thinking.append(delta.reasoning_content);
  }
  if (delta.tool_calls) add_calls(turn, delta.tool_calls, place.calls);
  if (choice.logprobs?.content) choice.logprobs.content.forEach((entry) => token(place.body, entry));
  if (delta.content) turn.content += delta.content;
  if (delta.content && !chances) markdown(place.body, turn.content);
  place.article.scrollIntoView({ block: "end" });
  return choice.finish_reason ?? "";
}

async function answer() {
  const turn = { role: "assistant", content: "" };
  const place = bubble(turn);
  answering = new AbortController();
  busy(true);
  const start = performance.now();
  let count = 0, why = "", seed;
  try {
    const body = request();
    for await (const event of events(body, answering.signal)) {
      seed = event.seed ?? seed;
      ++count;
      why = take(event, turn, place, body.logprobs) || why;
    }
    const rate = (count / (performance.now() - start)) * 1000;
    const cut = why === "length" ? "; cut at the most tokens it may have" : "";
    $("status").textContent = `${count} pieces, ${rate.toFixed(0)} a second; seed ${seed}${cut}`;
  } catch (error) {
    $("status").textContent = error.name === "AbortError" ? "Stopped." : error.message;
  }
  if (turn.content || turn.tool_calls) turns.push(turn);
  else place.article.remove();
  answering = null;
  busy(false);
  invite();
}

// The calls of the model's last turn that have no result yet.
function waiting_calls() {
  const last = turns.findLastIndex((turn) => turn.role === "assistant");
  return (turns[last]?.tool_calls ?? []).slice(turns.length - 1 - last);
}

function invite() {
  const [call] = waiting_calls();
  $("text").placeholder = call ? `What ${call.function.name} gave.` : "Ask something. Enter sends, Shift+Enter begins a line.";
  $("text").focus();
}

function again() {
  if (answering || turns.at(-1)?.role !== "assistant") return;
  turns.pop();
  $("talk").lastElementChild.remove();
  answer();
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  if (!text || answering) return;
  if (turns.at(-1)?.role === "user") turns.pop(); // it had no answer
  const [call] = waiting_calls();
  turns.push(call ? { role: "tool", tool_call_id: call.id, content: text } : { role: "user", content: text });
  bubble(turns.at(-1));
  $("text").value = "";
  if (waiting_calls().length) invite();
  else answer();
});
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("ask").requestSubmit();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") answering?.abort();
});
$("stop").addEventListener("click", () => answering?.abort());
$("again").addEventListener("click", again);
$("new").addEventListener("click", () => {
  answering?.abort();
  turns = [];
  $("talk").replaceChildren();
  $("status").textContent = "";
  $("again").disabled = true;
  invite();
});
$("show-settings").addEventListener("click", () => {
  $("settings").hidden = !$("settings").hidden;
  $("show-settings").setAttribute("aria-expanded", String(!$("settings").hidden));
});
$("settings").addEventListener("submit", (event) => event.preventDefault());
$("settings").addEventListener("change", () => {
  const now = Object.fromEntries(kept.map((id) => [id, id === "chances" ? $(id).checked : $(id).value]));
  localStorage.setItem("loom", JSON.stringify(now));
  sessionStorage.setItem("loom-key", $("key").value);
  describe();
});
$("file").addEventListener("change", async (event) => {
  const file = event.target.files[0];
  if (!file) return;
  if (file.size > 1e6) $("status").textContent = `${file.name} is larger than 1 MB`;
  else $("text").value += `\n${file.name}:\n\`\`\`\n${await file.text()}\n\`\`\`\n`;
  event.target.value = "";
});

async function describe() {
  const reply = await fetch("/props", { headers: headers() });
  if (!reply.ok) {
    $("status").textContent = (await reply.json()).error.message;
    $("settings").hidden = false;
    $("show-settings").setAttribute("aria-expanded", "true");
    return;
  }
  const props = await reply.json();
  chats = props.has_chat_template;
  $("model").textContent = document.title = props.model_alias;
  $("status").textContent = chats ? "" : "This model has no chat template: it goes on with your text.";
}

for (const [id, value] of Object.entries(JSON.parse(localStorage.getItem("loom") ?? "{}"))) {
  if (id === "chances") $(id).checked = value;
  else if (kept.includes(id)) $(id).value = value;
}
$("key").value = sessionStorage.getItem("loom-key") ?? "";
describe();
$("text").focus();
