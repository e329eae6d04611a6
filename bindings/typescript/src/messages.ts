/** Messages of a conversation, in the shape of OpenAI's clients. */

import { LoomError } from "./errors.js";
import type * as ffi from "./ffi.js";
import { namesOf } from "./known.js";

/** A call of a tool. Arguments are an object, or its JSON text. */
export interface ToolCall {
  readonly id?: string;
  readonly type?: string;
  readonly function: { readonly name: string; readonly arguments: string | object };
  /** The fault of a call that a model wrote, if the schema of the tool forbids it. */
  readonly problem?: string;
}

/** A message. Templates see all members, also those without a declaration here. */
export interface Turn {
  readonly role: string;
  /** A text, null next to calls, or a list of parts. */
  readonly content?: string | null | readonly (string | { readonly type: string; readonly [member: string]: unknown })[];
  readonly tool_calls?: readonly ToolCall[] | null;
  readonly tool_call_id?: string | null;
  readonly name?: string | null;
  readonly reasoning_content?: string | null;
  readonly [member: string]: unknown;
}

/** A reply as a message that continues the conversation. */
export interface ReplyMessage extends Turn {
  readonly role: "assistant";
  readonly content: string | null;
  readonly tool_calls?: readonly ToolCall[];
  readonly reasoning_content?: string;
}

/** Inputs of a chat template besides the messages. */
export interface ChatOptions extends Omit<ffi.ChatOptions, "tools" | "documents" | "variables"> {
  /** Functions that the model may call: a list of {type: "function", function: {name, description, parameters}}. */
  readonly tools?: unknown;
  /** A list that some templates quote. */
  readonly documents?: unknown;
  /** An object of template variables: {enable_thinking: false}. */
  readonly variables?: unknown;
}
export const chatNames = namesOf<ChatOptions>({ tools: 0, documents: 0, variables: 0, date: 0, noReply: 0,
  continueFinalMessage: 0 });

/** A value as JSON; a text is JSON already. */
export function jsonText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Options as the module takes them. */
export function chatOptions(options: ChatOptions): ffi.ChatOptions {
  const out: Record<string, unknown> = { ...options };
  for (const name of ["tools", "documents", "variables"]) {
    if (out[name] === undefined || out[name] === null) delete out[name];
    else out[name] = jsonText(out[name]);
  }
  return out as ffi.ChatOptions;
}

/** Messages as the module takes them. */
export function messagesText(turns: readonly Turn[]): string {
  if (!Array.isArray(turns)) throw new LoomError("invalid_argument", "turns must be a list of messages");
  return JSON.stringify(turns);
}
