// The chat page of `loom serve`: connects the elements of page.html with chats and the server.
import { addTurn, ChatStore, dropTurn, exportText, forkOf, importChats, kDefaults, newChat,
  PageStorage, pathOf, showBranch, titleOf, versionsOf, waitingCalls } from "./chats.mjs";
import { addEvent, Meter, requestOf, Server } from "./client.mjs";
import { $, button, element, isSend, TurnView } from "./view.mjs";

function storageOf(name) {
  try {
    return window[name];
  } catch {
    return new PageStorage();
  }
}
const session = storageOf("sessionStorage");
const store = new ChatStore(storageOf("localStorage"));
const server = new Server();
let chat = newChat(store.settings);
let models = [];
const templates = new Map(); // model -> whether it has a chat template; others continue texts
let running = null; // { chat, turn, model, controller, tokens }
let views = new Map(); // turn -> TurnView, of the chat on the page

// ---- messages to the user

function say(text, { bad = false, undo = null } = {}) {
  $("status").textContent = text;
  $("status").className = bad ? "bad" : "";
  $("undo").hidden = undo === null;
  $("undo").onclick = undo;
}
const fail = (error) => say(error.message, { bad: true });

function save(what) {
  if (store.merge(what)) {
    say("Another tab changed this chat too; the turns of both are in it.");
    if (what === chat && running?.chat !== chat) show();
  }
  if (what.turns.length === 0 || store.save(what)) return true;
  say("The browser has no more room for chats: export some, and delete them.", { bad: true });
  return false;
}

// ---- the list of chats

function renameHere(row, one) {
  const field = element("input", { "aria-label": "Title of the chat", maxlength: 200 });
  field.value = titleOf(one);
  let over = false;
  const end = (text) => {
    if (over) return;
    over = true;
    if (text !== null) {
      one.title = text.trim();
      save(one);
    }
    showChats();
    showTitle();
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") end(field.value);
    if (event.key === "Escape") end(null);
    event.stopPropagation();
  });
  field.addEventListener("blur", () => end(field.value));
  row.replaceChildren(field);
  field.select();
}

function remove(one) {
  if (running?.chat === one) running.controller.abort();
  store.remove(one.id);
  if (chat === one) open(newChat(chat.settings, chat.model));
  showChats();
  const back = () => {
    save(one);
    open(one);
    say("");
  };
  say(`Deleted “${titleOf(one)}”.`, { undo: back });
}

function download(chats, name) {
  const address = URL.createObjectURL(new Blob([exportText(chats)], { type: "application/json" }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function chatRow(one) {
  const title = titleOf(one), here = one.id === chat.id;
  const row = element("li", {}, button(title, () => open(here ? chat : one),
    { class: "open", "aria-current": here ? "true" : undefined }));
  if (!here) return row;
  row.append(element("div", { class: "row" },
    button("Rename", () => renameHere(row, chat), { "aria-label": `Rename ${title}` }),
    button("Export", () => download([chat], "loom-chat.json"), { "aria-label": `Export ${title}` }),
    button("Delete", () => remove(chat), { "aria-label": `Delete ${title}` })));
  return row;
}

function showChats() {
  const all = store.all().map((one) => (one.id === running?.chat.id ? running.chat : one));
  $("chats").replaceChildren(...all.map(chatRow));
  $("export").disabled = all.length === 0;
}

function showSide(yes) {
  document.body.classList.toggle("side", yes);
  $("show-chats").setAttribute("aria-expanded", String(yes));
  if (yes) $("new").focus();
}
const isSideOpen = () => document.body.classList.contains("side");
function hideSide() {
  showSide(false);
  $("show-chats").focus();
}

// ---- the chat on the page

function showTitle() {
  $("title").textContent = titleOf(chat);
  document.title = chat.turns.length > 0 ? titleOf(chat) : $("model").value || "Loom";
}

// The buttons that step between the versions of a turn.
function versionButtons(at) {
  const versions = versionsOf(chat, at), place = versions.indexOf(at);
  if (versions.length < 2) return [];
  const step = (text, label, to) => button(text, () => {
    if (running?.chat === chat) return;
    showBranch(chat, to);
    save(chat);
    show();
  }, { "aria-label": label, disabled: to === undefined });
  return [step("‹", "Earlier version", versions[place - 1]),
    element("span", { class: "count" }, `${place + 1} / ${versions.length}`),
    step("›", "Later version", versions[place + 1])];
}

// The buttons of a turn. They do nothing while the model answers in this chat.
function actsOf(at) {
  const turn = chat.turns[at], idle = (act) => () => running?.chat === chat || act();
  const acts = [];
  if (turn.role === "user")
    acts.push(["Edit", "Edit this message",
      idle(() => views.get(turn).edit((text) => edited(at, text)))]);
  if (turn.role === "assistant")
    acts.push(["Regenerate", "Regenerate this reply", idle(() => answer(turn.parent))]);
  else if (at === chat.leaf && waitingCalls(chat).length === 0)
    acts.push(["Answer", "Answer this message", idle(() => answer(at))]);
  acts.push(["Fork", "Fork the chat here", idle(() => {
    const fork = forkOf(chat, at);
    save(fork);
    open(fork);
  })]);
  return acts;
}

function edited(at, text) {
  if (text === null || text === chat.turns[at].content) return;
  answer(addTurn(chat, { role: "user", content: text }, chat.turns[at].parent));
}

function show() {
  views = new Map();
  for (const at of pathOf(chat)) {
    const turn = chat.turns[at];
    views.set(turn, new TurnView(turn, actsOf(at), versionButtons(at)));
  }
  if (running !== null) views.get(running.turn)?.show(running.tokens);
  const empty = element("p", { class: "empty" }, "Ask something to begin.");
  $("talk").replaceChildren(...[...views.values()].map((view) => view.article));
  if (views.size === 0) $("talk").append(empty);
  $("talk").scrollTop = $("talk").scrollHeight;
  showTitle();
  showChats();
  showBusy();
}

function open(next) {
  if (running?.chat.id !== next.id) store.remember(next);
  chat = running?.chat.id === next.id ? running.chat : next;
  session.setItem("loom-open", chat.id);
  for (const [name, value] of Object.entries(chat.settings))
    $(name)[name === "chances" ? "checked" : "value"] = value;
  if (models.some((model) => model.id === chat.model)) $("model").value = chat.model;
  showSide(false);
  say("");
  show();
  describe();
  invite();
}

function showBusy() {
  const here = running?.chat === chat;
  $("talk").setAttribute("aria-busy", String(here));
  $("stop").disabled = running === null;
  $("send").disabled = running !== null;
}

function invite() {
  const [call] = waitingCalls(chat);
  $("text").placeholder = call ? `The result of ${call.function.name}`
    : "Message (Enter sends, Shift+Enter adds a line)";
  $("text").focus();
}

// ---- replies

// At most one update per frame, and the page follows only if its end was visible.
const isAtEnd = (talk) => talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
let drawn = 0;
function draw() {
  drawn ||= requestAnimationFrame(() => {
    drawn = 0;
    const talk = $("talk"), view = running && views.get(running.turn);
    if (!view) return;
    const atEnd = isAtEnd(talk);
    view.show(running.tokens);
    if (atEnd) talk.scrollTop = talk.scrollHeight;
  });
}

const kSaveEvery = 2000; // ms, so that a closed page loses little of a long reply

async function receive(meter, at, hasTemplate) {
  const { turn, tokens, model, controller } = running;
  const [path, body] = requestOf(running.chat, at, { model, hasTemplate });
  let saved = performance.now();
  for await (const event of server.events(path, body, controller.signal)) {
    const now = performance.now();
    meter.event(event, now);
    tokens.push(...addEvent(turn, event));
    draw();
    if (now - saved < kSaveEvery || running === null) continue;
    saved = now;
    save(running.chat);
  }
}

// A model that was not in memory may turn out to have no chat template.
async function receiveOrRetry(meter, at) {
  const { model } = running;
  await describe(model);
  const known = templates.get(model);
  try {
    await receive(meter, at, known ?? true);
  } catch (error) {
    if (known !== undefined || error.name === "AbortError") throw error;
    await describe(model);
    if (templates.get(model) !== false) throw error;
    await receive(meter, at, false);
  }
}

// Writes the reply to the turn `at`, as a further version if there is one.
async function answer(at) {
  if (running !== null) return;
  const own = chat, model = $("model").value;
  const reply = { role: "assistant", content: "", ...(models.length > 1 && { model }) };
  const turn = own.turns[addTurn(own, reply, at)];
  running = { chat: own, turn, model, controller: new AbortController(), tokens: [] };
  own.model = model;
  save(own);
  say("");
  show();
  const meter = new Meter(performance.now());
  try {
    await receiveOrRetry(meter, at);
    turn.stats = meter.line();
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
    else say("Stopped.");
    if (meter.tokens > 0) turn.stats = `${meter.line()}, stopped`;
  }
  finish();
}

function finish() {
  const { chat: own, turn, tokens } = running;
  if (!turn.content && !turn.tool_calls && !turn.reasoning) dropTurn(own);
  running = null;
  if (store.load(own.id) !== null) save(own);
  if (own !== chat) return showBusy();
  const talk = $("talk"), { scrollTop } = talk, atEnd = isAtEnd(talk);
  show();
  views.get(turn)?.show(tokens);
  if (!atEnd) talk.scrollTop = scrollTop;
  invite();
}

function send() {
  const text = $("text").value.trim();
  if (!text || running !== null) return;
  const [call] = waitingCalls(chat), leaf = chat.turns[chat.leaf];
  const turn = call ? { role: "tool", tool_call_id: call.id, content: text }
    : { role: "user", content: text };
  // A message without an answer gets another version.
  const at = addTurn(chat, turn, leaf?.role === "user" ? leaf.parent : chat.leaf);
  $("text").value = "";
  save(chat);
  show();
  if (waitingCalls(chat).length > 0) invite();
  else answer(at);
}

// ---- the server

// Finds out whether a model has a chat template. It is unknown if the model is not in memory.
async function describe(model = $("model").value) {
  if (!templates.has(model)) {
    const rows = await server.models().catch(() => []);
    if (!rows.some(({ id, loaded }) => id === model && loaded)) return;
    const has = await server.hasTemplate(model).catch(() => undefined);
    if (has !== undefined) templates.set(model, has);
  }
  if (templates.get(model) === false && running === null && chat.turns.length === 0)
    say("This model has no chat template: it continues your text.");
}

async function connect() {
  try {
    models = await server.models();
  } catch (error) {
    showSettings(true);
    return fail(error);
  }
  $("model").replaceChildren(...models.map(({ id }) => element("option", { value: id }, id)));
  $("model").disabled = models.length < 2;
  if (models.some((model) => model.id === chat.model)) $("model").value = chat.model;
  say("");
  showTitle();
  await describe();
}

// ---- settings

function showSettings(yes) {
  $("settings").hidden = !yes;
  $("show-settings").setAttribute("aria-expanded", String(yes));
}

function takeSettings(event) {
  if (event.target.id === "key") {
    server.key = event.target.value;
    session.setItem("loom-key", server.key);
    return connect();
  }
  for (const name of Object.keys(kDefaults))
    chat.settings[name] = name === "chances" ? $(name).checked : $(name).value;
  store.settings = chat.settings;
  save(chat);
}

async function takeFiles(event) {
  for (const file of event.target.files) {
    if (file.size > 1e6) fail(new Error(`${file.name} is larger than 1 MB`));
    else $("text").value += `\n${file.name}:\n\`\`\`\n${await file.text()}\n\`\`\`\n`;
  }
  event.target.value = "";
}

async function takeChats(event) {
  try {
    const chats = importChats(await event.target.files[0].text());
    const stored = chats.every(save);
    showChats();
    if (stored) say(`Imported ${chats.length} ${chats.length === 1 ? "chat" : "chats"}.`);
  } catch (error) {
    fail(error);
  }
  event.target.value = "";
}

// ---- events

const on = (id, type, handler) => $(id).addEventListener(type, handler);
on("ask", "submit", (event) => {
  event.preventDefault();
  send();
});
on("text", "keydown", (event) => {
  if (!isSend(event)) return;
  event.preventDefault();
  send();
});
on("stop", "click", () => running?.controller.abort());
on("new", "click", () => open(newChat(chat.settings, chat.model)));
on("show-chats", "click", (event) => {
  event.stopPropagation();
  showSide(true);
});
on("hide-chats", "click", hideSide);
on("side", "focusout", (event) => {
  if (event.relatedTarget !== null && !$("side").contains(event.relatedTarget)) showSide(false);
});
document.addEventListener("click", (event) => {
  const outside = document.contains(event.target) && !$("side").contains(event.target);
  if (isSideOpen() && outside) hideSide();
});
on("show-settings", "click", () => showSettings($("settings").hidden));
on("settings", "submit", (event) => event.preventDefault());
on("settings", "change", takeSettings);
on("file", "change", takeFiles);
on("import", "change", takeChats);
on("export", "click", () => download(store.all(), "loom-chats.json"));
on("model", "change", () => {
  chat.model = $("model").value;
  save(chat);
  showTitle();
  describe();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (isSideOpen()) hideSide();
  else running?.controller.abort();
});
// Another tab changed a chat.
window.addEventListener("storage", (event) => {
  const changed = event.key?.endsWith(chat.id) && running?.chat !== chat && store.load(chat.id);
  if (!changed) return showChats();
  store.remember(changed);
  chat = changed;
  show();
});

server.key = session.getItem("loom-key") ?? "";
$("key").value = server.key;
open(store.load(session.getItem("loom-open")) ?? chat);
connect();
