/** Language models and tokenizers, as a program sees them. */

import * as ffi from "./ffi.js";
import { Feed, type CallOptions } from "./feed.js";
import { Closable, type Events, type Link } from "./link.js";
import type { Tensor } from "./memory.js";
import type { GenerationData, Handle, ParsedReply, TokenData, Turn } from "./protocol.js";

export type Prompt = string | ArrayLike<number>;

function ids(values: ArrayLike<number>): Int32Array {
  return values instanceof Int32Array ? values : Int32Array.from(values);
}

export interface GenerateOptions extends ffi.GenerateOptions, CallOptions {
  /** Positions of the KV cache; 0: the model's, at most 2048. */
  readonly context?: number;
  readonly onToken?: (token: TokenData) => void;
  /** Tokens of the prompt that were read, and in all. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** New text, with how it came to be. `stop`: "eos", "string", "length", "context" or "cancelled". */
export type Generation = GenerationData;

interface Progress {
  readonly done: number;
  readonly total: number;
}

export interface BeamSearchOptions extends ffi.BeamOptions, CallOptions {
  /** Tokens so far, and at most. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** A text of LLM.beamSearch(). */
export interface BeamText {
  readonly text: string;
  readonly ids: Int32Array;
  /** The sum of log-probabilities / tokens^lengthPenalty. */
  readonly score: number;
  readonly stop: ffi.Stop;
}

export interface PerplexityOptions extends ffi.PerplexityOptions, CallOptions {
  /** Predictions done, and in all. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** A language model. Every call begins with an empty context, and calls take turns. */
export class LLM extends Closable {
  readonly info: ffi.ModelInfo;
  constructor(link: Link, handle: Handle, info: ffi.ModelInfo) {
    super(link, handle);
    this.info = info;
  }

  /** A signal that ends it is no error: `stop` is "cancelled" then. */
  async generate(prompt: Prompt, { context = 0, onToken, onProgress, signal, ...options }: GenerateOptions = {}):
    Promise<Generation> {
    const events = {
      token: onToken ?? ((): void => undefined),
      progress: ({ done, total }: { done: number; total: number }): void => onProgress?.(done, total),
    };
    const what = typeof prompt === "string" ? prompt : ids(prompt);
    return this.link.ask("modelGenerate", [this.handle, what, options, { context }], events as Events, signal);
  }

  /** The text token by token. Leaving the loop ends the work. */
  async *stream(prompt: Prompt, options: GenerateOptions = {}): AsyncGenerator<TokenData, void> {
    const feed = new Feed<TokenData>(), leaving = new AbortController();
    const signal = options.signal === undefined ? leaving.signal : AbortSignal.any([options.signal, leaving.signal]);
    feed.follow(this.generate(prompt, { ...options, signal, onToken: (token) => feed.push(token) }));
    try {
      yield* feed.values();
    } finally {
      leaving.abort();
    }
  }

  /** The next turn of a conversation, by the model's own template, token by token. */
  async *chat(turns: readonly Turn[], options: GenerateOptions = {}): AsyncGenerator<TokenData, void> {
    const { ids: prompt } = await this.link.ask("modelChat", [this.handle, turns, {}]);
    yield* this.stream(prompt, options);
  }
  /** The conversation as the template writes it. */
  async renderChat(turns: readonly Turn[], options: ffi.ChatOptions = {}): Promise<string> {
    return (await this.link.ask("modelChat", [this.handle, turns, options])).text;
  }

  tokenize(text: string, { specialTokens = true } = {}): Promise<Int32Array> {
    return this.link.ask("modelTokenize", [this.handle, text, specialTokens]);
  }
  detokenize(tokens: ArrayLike<number>, { skipSpecial = true } = {}): Promise<string> {
    return this.link.ask("modelDetokenize", [this.handle, ids(tokens), skipSpecial]);
  }
  /** What generate() gives for each prompt, written together, `sequences` at a time. */
  async generateBatch(prompts: readonly Prompt[], { sequences = 4, ...options }: ffi.GenerateOptions & { sequences?: number }
    = {}): Promise<Generation[]> {
    const all = await Promise.all(prompts.map(async (p) => (typeof p === "string" ? this.tokenize(p) : ids(p))));
    return this.link.ask("modelBatch", [this.handle, all, options, { sequences }]);
  }
  /** The likeliest continuations as a whole, best first. */
  async beamSearch(prompt: Prompt, { signal, onProgress, ...options }: BeamSearchOptions = {}): Promise<BeamText[]> {
    const start = typeof prompt === "string" ? await this.tokenize(prompt) : ids(prompt);
    const events = { progress: ({ done, total }: Progress): void => onProgress?.(done, total) } as Events;
    const text = await this.link.ask("modelBeams", [this.handle, start, options], events, signal);
    const stops = Object.keys(ffi.Stop) as ffi.Stop[];
    return (JSON.parse(text) as { text: string; token_ids: number[]; score: number; stop: number }[]).map((one) => ({
      text: one.text, ids: Int32Array.from(one.token_ids), score: one.score,
      stop: stops.find((name) => ffi.Stop[name] === one.stop) ?? "length",
    }));
  }
  /** How well the model predicts a text. */
  async perplexity(text: Prompt, { signal, onProgress, ...options }: PerplexityOptions = {}): Promise<ffi.Perplexity> {
    const read = typeof text === "string" ? await this.tokenize(text) : ids(text);
    const events = { progress: ({ done, total }: Progress): void => onProgress?.(done, total) } as Events;
    return this.link.ask("modelPerplexity", [this.handle, read, options], events, signal);
  }
  /** Vectors [texts, dimensions], in the order of the texts. */
  embed(texts: readonly string[], options: ffi.EmbedOptions = {}): Promise<Tensor> {
    return this.link.ask("modelEmbed", [this.handle, texts, options]);
  }
  /** The same of tokens: no prompt and no special tokens are added. */
  embedTokens(texts: readonly ArrayLike<number>[], options: ffi.EmbedOptions = {}): Promise<Tensor> {
    return this.link.ask("modelEmbedTokens", [this.handle, texts.map(ids), options]);
  }
  /** The documents by how well they answer the query, best first. */
  rerank(query: string, documents: readonly string[], options: ffi.RerankOptions = {}): Promise<ffi.Ranked[]> {
    return this.link.ask("modelRerank", [this.handle, query, documents, options]);
  }
  /** The text of the chat template; "": there is none. */
  chatTemplate(): Promise<string> {
    return this.link.ask("modelText", [this.handle, "chat_template"]);
  }
  /** How the model writes calls of tools; "": it has no form for them. */
  toolFormat(): Promise<string> {
    return this.link.ask("modelText", [this.handle, "tool_format"]);
  }
  /** Options of generate() from the model's generation_config.json; null without it. */
  async suggestedSampling(): Promise<ffi.GenerateOptions | null> {
    const told = JSON.parse(await this.link.ask("modelText", [this.handle, "suggested_sampling"])) as
      null | { temperature: number; top_k: number; top_p: number; min_p: number; repetition_penalty: number;
        repetition_window: number };
    return told === null ? null : { temperature: told.temperature, topK: told.top_k, topP: told.top_p, minP: told.min_p,
      repetitionPenalty: told.repetition_penalty, repetitionWindow: told.repetition_window };
  }
  /** 16 digits for all that affects the bits of a text besides the request. Reads all weights. */
  fingerprint(cacheType: ffi.Dtype = "float32"): Promise<string> {
    return this.link.ask("modelFingerprint", [this.handle, cacheType]);
  }
  /** A grammar that constrains calls in a reply to `prompt`, of renderChat(), to the schemas of `tools`, a JSON text. */
  callGrammar(prompt: string, tools: string, rules: ffi.CallRules = {}): Promise<string> {
    return this.link.ask("modelCallGrammar", [this.handle, prompt, tools, rules]);
  }
  /** A reply to `prompt` in parts: text, reasoning and calls. `tools`: the JSON text of the prompt. */
  parseReply(text: string, { prompt = "", tools = null }: { prompt?: string; tools?: string | null } = {}): Promise<ParsedReply> {
    return this.link.ask("modelParseReply", [this.handle, text, prompt, tools]);
  }
  /** The tokenizer, which keeps the model alive. */
  async tokenizer(): Promise<Tokenizer> {
    return new Tokenizer(this.link, await this.link.ask("modelTokenizer", [this.handle]));
  }
  /** Logits [vocab] after the last of these tokens. */
  logits(tokens: ArrayLike<number>): Promise<Float32Array> {
    return this.link.ask("modelLogits", [this.handle, ids(tokens)]);
  }
}

/** Text to tokens and back, without the weights of a model. */
export class Tokenizer extends Closable {
  encode(text: string, { specialTokens = true } = {}): Promise<Int32Array> {
    return this.link.ask("tokenizerEncode", [this.handle, text, specialTokens]);
  }
  decode(tokens: ArrayLike<number>, { skipSpecial = true } = {}): Promise<string> {
    return this.link.ask("tokenizerDecode", [this.handle, ids(tokens), skipSpecial]);
  }
  /** The bytes that a token adds to a text, which may be a part of a character. */
  tokenBytes(token: number): Promise<Uint8Array> {
    return this.link.ask("tokenizerBytes", [this.handle, token]);
  }
  /** Ids of the special tokens, ascending. */
  specialTokens(): Promise<Int32Array> {
    return this.link.ask("tokenizerSpecial", [this.handle]);
  }
  /** The id of a token as the vocabulary writes it. Errors: "not_found". */
  tokenId(token: string): Promise<number> {
    return this.link.ask("tokenizerId", [this.handle, token]);
  }
  /** The highest id and one more. */
  vocabSize(): Promise<number> {
    return this.link.ask("tokenizerSize", [this.handle]);
  }
}
