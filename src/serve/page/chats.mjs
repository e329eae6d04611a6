// Chats as data: a tree of turns with settings, their storage, export and import. No DOM.
// A turn is a message as the server reads it, and `parent`, the index of the turn before it (-1 for
// the first). Turns of one parent are branches; `leaf` is the last turn of the branch on the page.

// Values of the settings form. An empty value leaves the choice to the server.
export const kDefaults = {
  system: "", tools: "", temperature: "0.8", top_p: "", top_k: "", min_p: "",
  repetition_penalty: "", seed: "", max_tokens: "512", chances: false,
};
export const kSamplers = Object.keys(kDefaults).filter(
  (name) => !["system", "tools", "chances"].includes(name));

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newChat(settings = kDefaults, model = "") {
  const now = Date.now();
  return { id: newId(), title: "", model, created: now, changed: now,
    settings: { ...kDefaults, ...settings }, turns: [], leaf: -1 };
}

// Appends a turn after `parent`, and shows it. Returns its index.
export function addTurn(chat, turn, parent = chat.leaf) {
  chat.turns.push({ ...turn, parent });
  chat.leaf = chat.turns.length - 1;
  chat.changed = Date.now();
  return chat.leaf;
}

// Removes the turn that was added last.
export function dropTurn(chat) {
  const { parent } = chat.turns.pop();
  if (chat.leaf === chat.turns.length) chat.leaf = parent;
}

// Indices of the turns from the first to `at`.
export function pathOf(chat, at = chat.leaf) {
  const path = [];
  for (let i = at; i >= 0; i = chat.turns[i].parent) path.unshift(i);
  return path;
}

const childrenOf = (chat, parent) =>
  chat.turns.flatMap((turn, i) => (turn.parent === parent ? [i] : []));

// The versions of a turn, itself included.
export const versionsOf = (chat, at) => childrenOf(chat, chat.turns[at].parent);

// Shows the branch of a turn, to its newest end.
export function showBranch(chat, at) {
  let leaf = at;
  for (let next = childrenOf(chat, at); next.length > 0; next = childrenOf(chat, leaf))
    leaf = next.at(-1);
  chat.leaf = leaf;
}

// A chat of its own with the turns up to `at`.
export function forkOf(chat, at) {
  const fork = newChat(chat.settings, chat.model);
  for (const i of pathOf(chat, at)) addTurn(fork, structuredClone(chat.turns[i]), fork.leaf);
  fork.title = `${titleOf(chat)} (fork)`;
  return fork;
}

export function titleOf(chat) {
  if (chat.title) return chat.title;
  const line = chat.turns[0]?.content.trim().split("\n")[0] ?? "";
  return line.length > 60 ? `${line.slice(0, 59)}…` : line || "New chat";
}

// The messages of the branch on the page up to `at`, as the server reads them.
export function messagesOf(chat, at = chat.leaf) {
  const messages = pathOf(chat, at).map((i) => {
    const { role, content, tool_calls, tool_call_id: id } = chat.turns[i];
    return { role, content, ...(tool_calls && { tool_calls }), ...(id && { tool_call_id: id }) };
  });
  const system = chat.settings.system.trim();
  return system ? [{ role: "system", content: system }, ...messages] : messages;
}

// The calls of the model's last turn that have no result yet.
export function waitingCalls(chat) {
  const path = pathOf(chat).map((i) => chat.turns[i]);
  const last = path.findLastIndex((turn) => turn.role === "assistant");
  return (path[last]?.tool_calls ?? []).slice(path.length - 1 - last);
}

// ---- files

export const exportText = (chats) => JSON.stringify({ loom_chats: 1, chats }, null, 1);

const isText = (value) => typeof value === "string";
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function readCalls(calls, where) {
  if (!Array.isArray(calls)) throw new Error(`${where}.tool_calls is not a list`);
  return calls.map((call) => {
    const { name, arguments: text } = call?.function ?? {};
    if (!isText(call?.id) || !isText(name) || !isText(text))
      throw new Error(`${where}.tool_calls needs id, name and arguments as texts`);
    return { id: call.id, type: "function", function: { name, arguments: text } };
  });
}

function readTurn(turn, i, where) {
  if (!isObject(turn) || !["user", "assistant", "tool"].includes(turn.role))
    throw new Error(`${where}.role must be user, assistant or tool`);
  if (!isText(turn.content)) throw new Error(`${where}.content is not a text`);
  if (!Number.isInteger(turn.parent) || turn.parent < -1 || turn.parent >= i)
    throw new Error(`${where}.parent must be an earlier turn, or -1`);
  const out = { role: turn.role, content: turn.content, parent: turn.parent };
  for (const name of ["reasoning", "tool_call_id", "model", "stats"])
    if (isText(turn[name])) out[name] = turn[name];
  if (turn.tool_calls !== undefined) out.tool_calls = readCalls(turn.tool_calls, where);
  return out;
}

function readChat(chat, where) {
  if (!Array.isArray(chat?.turns)) throw new Error(`${where}.turns is not a list`);
  const out = newChat({}, isText(chat.model) ? chat.model : "");
  if (isText(chat.title)) out.title = chat.title;
  for (const time of ["created", "changed"])
    if (Number.isFinite(chat[time])) out[time] = chat[time];
  for (const [name, value] of Object.entries(kDefaults))
    if (typeof chat.settings?.[name] === typeof value) out.settings[name] = chat.settings[name];
  out.turns = chat.turns.map((turn, i) => readTurn(turn, i, `${where}.turns[${i}]`));
  const { leaf } = chat;
  out.leaf = Number.isInteger(leaf) && leaf >= -1 && leaf < out.turns.length
    ? leaf : out.turns.length - 1;
  return out;
}

// The chats of an exported file, with new ids. Throws an Error of one line.
export function importChats(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Error("the file is not JSON; choose one that Export wrote");
  }
  if (data?.loom_chats !== 1 || !Array.isArray(data.chats))
    throw new Error("the file has no chats; choose one that Export wrote");
  return data.chats.map((chat, i) => readChat(chat, `chats[${i}]`));
}

// ---- storage

// Adds to `ours` the changes that another tab stored: `theirs`. known: the turns of the last common
// state, as JSON. Turns only come at the end, so new ones of both follow each other. Our version of
// a turn counts if both changed it. Returns whether `ours` has other turns now.
export function mergeChat(ours, theirs, known) {
  const before = JSON.stringify(ours.turns), { length } = known;
  const own = ours.turns.splice(length);
  theirs.turns.slice(0, length).forEach((turn, i) => {
    const changed = ours.turns[i] && JSON.stringify(ours.turns[i]) !== known[i];
    const dropped = i >= ours.turns.length && theirs.turns.length <= length;
    if (!changed && !dropped) ours.turns[i] = Object.assign(ours.turns[i] ?? {}, turn);
  });
  const more = theirs.turns.slice(length);
  ours.turns.push(...more, ...own);
  const moved = (at) => (at >= length ? at + more.length : at);
  for (const turn of own) turn.parent = moved(turn.parent);
  ours.leaf = moved(ours.leaf);
  return JSON.stringify(ours.turns) !== before;
}

const kPrefix = "loom.chat.", kSettingsKey = "loom";

// Chats in a Storage of the browser, one key each, so that tabs do not overwrite each other.
export class ChatStore {
  #known = new Map(); // id -> the turns that this tab and the storage had in common last
  constructor(storage) {
    this.storage = storage;
  }
  // This tab edits the chat, as it is in the storage now.
  remember(chat) {
    this.#known.set(chat.id, chat.turns.map((turn) => JSON.stringify(turn)));
  }
  // Adds what another tab stored since remember() or save(). Returns whether there was something.
  merge(chat) {
    const known = this.#known.get(chat.id), stored = known && this.load(chat.id);
    return stored ? mergeChat(chat, stored, known) : false;
  }
  #parsed(key) {
    try {
      return JSON.parse(this.storage.getItem(key));
    } catch {
      return null;
    }
  }
  // The newest first. Damaged entries are skipped.
  all() {
    const chats = [];
    for (let i = 0; i < this.storage.length; ++i) {
      const key = this.storage.key(i);
      const chat = key.startsWith(kPrefix) ? this.load(key.slice(kPrefix.length)) : null;
      if (chat !== null) chats.push(chat);
    }
    return chats.sort((a, b) => b.changed - a.changed);
  }
  load(id) {
    const data = this.#parsed(kPrefix + id);
    if (data === null) return null;
    try {
      return { ...readChat(data, "chat"), id };
    } catch {
      return null;
    }
  }
  // false: the storage is full.
  save(chat) {
    this.remember(chat);
    return this.#write(kPrefix + chat.id, chat);
  }
  remove(id) {
    this.storage.removeItem(kPrefix + id);
  }
  // The settings of new chats.
  get settings() {
    return { ...kDefaults, ...this.#parsed(kSettingsKey) };
  }
  set settings(values) {
    this.#write(kSettingsKey, values);
  }
  #write(key, value) {
    try {
      this.storage.setItem(key, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  }
}

// A Storage for browsers that forbid one: it lasts as long as the page.
export class PageStorage {
  #values = new Map();
  get length() {
    return this.#values.size;
  }
  key(i) {
    return [...this.#values.keys()][i] ?? null;
  }
  getItem(key) {
    return this.#values.get(key) ?? null;
  }
  setItem(key, value) {
    this.#values.set(key, String(value));
  }
  removeItem(key) {
    this.#values.delete(key);
  }
}
