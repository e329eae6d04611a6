/** The worker's part of vectors of texts, special tokens, and the state of sessions. */

import type { Calls } from "./calls.js";
import * as ffi from "./ffi.js";
import { after, type Later } from "./later.js";
import type { Scope } from "./memory.js";
import type { Loaded } from "./module.js";
import type { Handle, MoreOperations } from "./protocol.js";

type Operations<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (context: unknown, ...args: A) => Later<R> : never;
};

/** A list of texts in memory of the module. */
function textList(scope: Scope, m: Loaded, texts: readonly string[]): number {
  const width = m.memory.addressSize, list = scope.keep(m.memory.allocate(Math.max(1, texts.length) * width));
  texts.forEach((text, i) => m.memory.writeAddress(list + width * i, m.memory.text(scope, text)));
  return list;
}

export function moreOperations(calls: Calls): Operations<MoreOperations> {
  const model = (handle: Handle): number => calls.at(handle, "model");
  const session = (handle: Handle): number => calls.at(handle, "session");
  /** The integer that a call writes to its last argument. */
  const integer = (body: (m: Loaded, out: number) => number): number => calls.scoped((scope, m) => {
    const out = scope.keep(m.memory.allocate(8));
    calls.check(body(m, out));
    return Number(m.memory.view.getBigInt64(out, true));
  });
  return {
    modelEmbed: (_, handle, texts, options) => calls.array(calls.out((scope, out, m) => {
      const list = textList(scope, m, texts), how = m.memory.options(scope, ffi.loom_embed_options, options);
      return m.wait((f) => f.loom_model_embed(model(handle), list, BigInt(texts.length), how, out));
    })),
    modelRerank: (_, handle, query, documents, options) => calls.scoped((scope, m): Later<ffi.Ranked[]> => {
      const { size } = m.memory.layout(ffi.loom_ranked), count = documents.length;
      const out = scope.keep(m.memory.allocate(size * Math.max(1, count)));
      const ranked = calls.done((inner, module) => {
        const asked = module.memory.text(inner, query), list = textList(inner, module, documents);
        const how = module.memory.options(inner, ffi.loom_rerank_options, options);
        return module.wait((f) => f.loom_model_rerank(model(handle), asked, list, BigInt(count), how, out));
      });
      return after(ranked, () => documents.map((_text, i) =>
        m.memory.read(ffi.loom_ranked, out + size * i) as unknown as ffi.Ranked));
    }),
    modelToolFormat: (_, handle) => calls.text((_scope, out, m) =>
      m.call((f) => f.loom_model_tool_format(model(handle), out))),
    modelReadReply: (_, handle, text, prompt, tools) => calls.text((scope, out, m) => {
      const words = m.memory.text(scope, text), before = m.memory.text(scope, prompt);
      const offered = tools === null ? 0 : m.memory.text(scope, tools);
      return m.call((f) => f.loom_model_read_reply(model(handle), words, before, offered, out));
    }),
    tokenizerSpecial: (_, handle) => calls.ids((_scope, ids, count, m) =>
      m.call((f) => f.loom_tokenizer_special_tokens(calls.at(handle, "tokenizer"), ids, count))),
    tokenizerId: (_, handle, token) => calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(8)), text = m.memory.text(scope, token);
      calls.check(m.call((f) => f.loom_tokenizer_token_id(calls.at(handle, "tokenizer"), text, out)));
      return m.memory.view.getInt32(out, true);
    }),
    sessionSetLengths: (_, handle, lengths) => calls.scoped((scope, m) => {
      const list = scope.keep(m.memory.allocate(8 * Math.max(1, lengths.length)));
      lengths.forEach((length, i) => m.memory.view.setBigInt64(list + 8 * i, BigInt(length), true));
      calls.check(m.call((f) => f.loom_session_set_lengths(session(handle), list, BigInt(lengths.length))));
    }),
    sessionStates: (_, handle) => {
      const count = integer((m, out) => m.call((f) => f.loom_session_state_count(session(handle), out)));
      return Array.from({ length: count }, (_v, i) => calls.array(calls.out((_scope, out, m) =>
        m.call((f) => f.loom_session_state(session(handle), BigInt(i), out)))));
    },
    sessionSetStates: (_, handle, states) => calls.scoped((scope, m) => {
      const list = m.memory.tensors(scope, states);
      calls.check(m.call((f) => f.loom_session_set_states(session(handle), list, BigInt(states.length))));
    }),
    sessionPosition: (_, handle) => integer((m, out) => m.call((f) => f.loom_session_position(session(handle), out))),
    sessionBytes: (_, handle) => integer((m, out) => m.call((f) => f.loom_session_bytes(session(handle), out))),
    trainerBytes: (_, handle) => integer((m, out) =>
      m.call((f) => f.loom_trainer_bytes(calls.at(handle, "trainer"), out))),
  };
}
