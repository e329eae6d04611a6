// Requests to the server and its replies. No DOM.
import { kSamplers, messagesOf } from "./chats.mjs";

// The JSON values of server-sent events, from text in pieces of any size.
export class EventReader {
  #rest = "";
  *read(text) {
    const events = (this.#rest + text).split("\n\n");
    this.#rest = events.pop();
    for (const event of events) {
      for (const line of event.split("\n"))
        if (line.startsWith("data: {")) yield JSON.parse(line.slice(6));
    }
  }
}

function toolsOf(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`Tools is not JSON: ${error.message}`);
  }
}

// The path and body of a request for the turn after `at`. Without a chat template the model
// continues the text of the last message.
export function requestOf(chat, at, { model, hasTemplate }) {
  const { settings } = chat;
  const body = { model, stream: true, stream_options: { include_usage: true } };
  for (const name of kSamplers)
    if (settings[name] !== "" && !(name === "seed" && Number(settings[name]) < 0))
      body[name] = Number(settings[name]);
  if (!hasTemplate)
    return ["v1/completions", { ...body, prompt: messagesOf(chat, at).at(-1)?.content ?? "" }];
  if (settings.chances) Object.assign(body, { logprobs: true, top_logprobs: 4 });
  if (settings.tools.trim()) body.tools = toolsOf(settings.tools);
  return ["v1/chat/completions", { ...body, messages: messagesOf(chat, at) }];
}

// Tool calls come in fragments, separated by their index.
function addCalls(turn, fragments) {
  turn.tool_calls ??= [];
  for (const part of fragments) {
    const call = (turn.tool_calls[part.index] ??=
      { id: "", type: "function", function: { name: "", arguments: "" } });
    if (part.id) call.id = part.id;
    call.function.name += part.function?.name ?? "";
    call.function.arguments += part.function?.arguments ?? "";
  }
}

// The measures of a reply: tokens, their rate and the time to the first.
export class Meter {
  #begin;
  #first = 0;
  #last = 0;
  tokens = 0;
  rate = 0;
  seed = null;
  finish = "";
  constructor(now) {
    this.#begin = now;
  }
  // The counts of the server replace those of the page when they come.
  event(event, now) {
    this.seed = event.seed ?? this.seed;
    if (event.usage) this.tokens = event.usage.completion_tokens;
    if (event.timings?.predicted_per_second) this.rate = event.timings.predicted_per_second;
    const choice = event.choices?.[0];
    this.finish = choice?.finish_reason ?? this.finish;
    const delta = choice?.delta ?? { content: choice?.text };
    if (!delta.content && !delta.reasoning_content && !delta.tool_calls) return;
    ++this.tokens;
    this.#first ||= now;
    this.#last = now;
  }
  // "142 tokens, 38.1 tokens/s, first token after 0.21 s"
  line() {
    const seconds = (this.#last - this.#first) / 1000;
    const rate = this.rate || (this.tokens > 1 && seconds > 0 ? (this.tokens - 1) / seconds : 0);
    const parts = [`${this.tokens} ${this.tokens === 1 ? "token" : "tokens"}`];
    if (rate > 0) parts.push(`${rate.toFixed(1)} tokens/s`);
    if (this.#first > 0)
      parts.push(`first token after ${((this.#first - this.#begin) / 1000).toFixed(2)} s`);
    if (this.seed !== null) parts.push(`seed ${this.seed}`);
    if (this.finish === "length") parts.push("cut at the token limit");
    return parts.join(", ");
  }
}

// Adds an event of the stream to a turn. Returns the probabilities of its tokens.
export function addEvent(turn, event) {
  const choice = event.choices?.[0];
  if (!choice) return [];
  const delta = choice.delta ?? { content: choice.text };
  if (delta.reasoning_content) turn.reasoning = (turn.reasoning ?? "") + delta.reasoning_content;
  if (delta.tool_calls) addCalls(turn, delta.tool_calls);
  if (delta.content) turn.content += delta.content;
  return choice.logprobs?.content ?? [];
}

// A server at the address of the page.
export class Server {
  key = "";
  #headers() {
    const out = { "Content-Type": "application/json" };
    if (this.key) out.Authorization = `Bearer ${this.key}`;
    return out;
  }
  async #fetch(path, options) {
    let reply;
    try {
      reply = await fetch(path, { ...options, headers: this.#headers() });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("the server does not answer; start it again, and try again");
    }
    if (reply.ok) return reply;
    const body = await reply.json().catch(() => null);
    throw new Error(body?.error?.message ?? `the server answered ${reply.status}`);
  }
  async models() {
    const { data } = await (await this.#fetch("v1/models")).json();
    return data.map(({ id, status }) => ({ id, loaded: status?.value === "loaded" }));
  }
  // Whether a model in memory has a chat template. A model that is not in memory throws.
  async hasTemplate(model) {
    const reply = await this.#fetch(`props?model=${encodeURIComponent(model)}`);
    return (await reply.json()).has_chat_template;
  }
  async* events(path, body, signal) {
    const reply = await this.#fetch(path, { method: "POST", signal, body: JSON.stringify(body) });
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      for (const event of events.read(part.value)) {
        if (event.error) throw new Error(event.error.message);
        yield event;
      }
    }
  }
}
