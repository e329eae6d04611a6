/** The worker's side of what a language model does besides generate(). */

import { integers } from "./analysis_server.js";
import type { Calls } from "./calls.js";
import * as ffi from "./ffi.js";
import { after, type Later } from "./later.js";
import type { Scope } from "./memory.js";
import type { Loaded } from "./module.js";
import type { GenerationData, Handle, LanguageOperations, ParsedReply, Progress } from "./protocol.js";

type Operations<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (context: Progress, ...args: A) => Later<R> : never;
};

/** A list of texts in memory of the module. */
export function textList(scope: Scope, m: Loaded, texts: readonly string[]): number {
  const width = m.memory.addressSize, list = scope.keep(m.memory.allocate(texts.length * width));
  texts.forEach((text, i) => m.memory.writeAddress(list + width * i, m.memory.text(scope, text)));
  return list;
}

/** A copy of a generation, which is freed. */
export function takeGeneration(calls: Calls, generation: number): GenerationData {
  return calls.scoped((scope, m) => {
    const out = scope.keep(m.memory.allocate(16));
    calls.check(m.call((f) => f.loom_generation_text(generation, out, 0)));
    const text = m.memory.readText(m.memory.readAddress(out));
    calls.check(m.call((f) => f.loom_generation_ids(generation, out, out + 8)));
    const count = Number(m.memory.view.getBigInt64(out + 8, true));
    const ids = new Int32Array(m.memory.memory.buffer, m.memory.readAddress(out), count).slice();
    const info: ffi.GenerationInfo = calls.report(ffi.loom_generation_info, (at) =>
      m.call((f) => f.loom_generation_get_info(generation, at)));
    m.call((f) => f.loom_generation_free(generation));
    return { ...info, text, ids };
  });
}

/** One text for each prompt; one that ends makes room for the next. */
async function writeBatch(calls: Calls, model: number, prompts: readonly Int32Array[], options: object,
  how: { sequences: number }): Promise<GenerationData[]> {
  const batch = await calls.out((scope, out, m) => {
    const given = m.memory.options(scope, ffi.loom_batch_options, how);
    return m.wait((f) => f.loom_model_batch(model, given, out));
  });
  const begin = async (sequence: bigint, prompt: Int32Array): Promise<void> => {
    await calls.done((_scope, m) => m.wait((f) => f.loom_batch_rewind(batch, sequence, 0n)));
    await calls.done((scope, m) => {
      const list = m.memory.ids(scope, prompt), given = m.memory.options(scope, ffi.loom_generate_options, options);
      return m.wait((f) => f.loom_batch_start(batch, sequence, list, BigInt(prompt.length), given));
    });
  };
  const runs = (sequence: bigint): boolean => calls.scoped((scope, m) => {
    const out = scope.keep(m.memory.allocate(8));
    calls.check(m.call((f) => f.loom_batch_is_running(batch, sequence, out)));
    return m.memory.view.getInt32(out, true) !== 0;
  });
  const made: GenerationData[] = [], running = new Map<bigint, number>();
  try {
    for (let next = 0; next < prompts.length || running.size > 0; ) {
      for (let sequence = 0n; sequence < BigInt(how.sequences); ++sequence) {
        const prompt = prompts[next];
        if (running.has(sequence) || prompt === undefined) continue;
        await begin(sequence, prompt);
        running.set(sequence, next++);
      }
      await calls.done((_scope, m) => m.wait((f) => f.loom_batch_step(batch)));
      for (const [sequence, index] of [...running]) {
        if (runs(sequence)) continue;
        const taken = calls.out((_scope, out, m) => m.call((f) => f.loom_batch_take(batch, sequence, out)));
        made[index] = takeGeneration(calls, taken);
        running.delete(sequence);
      }
    }
  } finally {
    await calls.module.wait((f) => f.loom_batch_free(batch));
  }
  return made;
}

/** A whole reply, by a parser that is freed. */
function parseReply(calls: Calls, model: number, text: string, prompt: string, tools: string | null): ParsedReply {
  const parser = calls.out((scope, out, m) => {
    const before = m.memory.text(scope, prompt), offered = tools === null ? 0 : m.memory.text(scope, tools);
    return m.call((f) => f.loom_model_reply_parser(model, before, offered, out));
  });
  const parts = { text: "", reasoning: "" }, found: { name: string; arguments: string }[] = [];
  const seen = (...args: (number | bigint)[]): boolean => {
    const kind = Number(args[0]), piece = calls.module.memory.readText(Number(args[1])), call = found[Number(args[2])];
    if (kind === ffi.ReplyKind.call) found.push({ name: piece, arguments: "" });
    else if (kind === ffi.ReplyKind.arguments && call !== undefined) call.arguments += piece;
    else if (kind === ffi.ReplyKind.reasoning) parts.reasoning += piece;
    else parts.text += piece;
    return true;
  };
  try {
    calls.listening(seen, (user) => calls.scoped((scope, m) => {
      const sink = m.callback("loom_reply_fn"), read = m.memory.text(scope, text);
      calls.check(m.call((f) => f.loom_reply_parser_feed(parser, read, sink, user)));
      calls.check(m.call((f) => f.loom_reply_parser_finish(parser, sink, user)));
    }));
    const problem = (i: number): string => calls.text((_scope, out, m) =>
      m.call((f) => f.loom_reply_parser_problem(parser, i, out)));
    return { ...parts, calls: found.map((call, i) => ({ ...call, problem: problem(i) })) };
  } finally {
    calls.module.call((f) => f.loom_reply_parser_free(parser));
  }
}

export function languageOperations(calls: Calls): Operations<LanguageOperations> {
  const model = (handle: Handle): number => calls.at(handle, "model");
  const tokenizer = (handle: Handle): number => calls.at(handle, "tokenizer");
  const watched = (context: Progress) => (...args: (number | bigint)[]): boolean => {
    context.tell("progress", { done: Number(args[0]), total: Number(args[1]) });
    return !context.cancel.asked;
  };
  return {
    modelBatch: (_, handle, prompts, options, batch) => writeBatch(calls, model(handle), prompts, options, batch),
    modelBeams: (context, handle, prompt, options) => calls.listening(watched(context), (user) =>
      calls.text((scope, out, m) => {
        const progress = m.callback("loom_progress_fn"), list = m.memory.ids(scope, prompt);
        const how = m.memory.options(scope, ffi.loom_beam_options, options, { user, progress });
        return m.wait((f) => f.loom_beam_search(model(handle), list, BigInt(prompt.length), how, out));
      })),
    modelPerplexity: (context, handle, ids, options) => calls.listening(watched(context), (user) =>
      calls.scoped((scope, m): Later<ffi.Perplexity> => {
        const progress = m.callback("loom_progress_fn"), list = m.memory.ids(scope, ids);
        const how = m.memory.options(scope, ffi.loom_perplexity_options, options, { user, progress });
        return calls.report(ffi.loom_perplexity, (to) =>
          m.wait((f) => f.loom_model_perplexity(model(handle), list, BigInt(ids.length), how, to)));
      })),
    modelEmbed: (_, handle, texts, options) => calls.array(calls.out((scope, out, m) => {
      const list = textList(scope, m, texts), how = m.memory.options(scope, ffi.loom_embed_options, options);
      return m.wait((f) => f.loom_model_embed(model(handle), list, BigInt(texts.length), how, out));
    })),
    modelEmbedTokens: (_, handle, texts, options) => calls.array(calls.out((scope, out, m) => {
      const all = m.memory.ids(scope, texts.flatMap((ids) => [...ids]));
      const lengths = integers(scope, m, BigInt64Array.from(texts.map((ids) => BigInt(ids.length))));
      const how = m.memory.options(scope, ffi.loom_embed_options, options);
      return m.wait((f) => f.loom_model_embed_tokens(model(handle), all, lengths, BigInt(texts.length), how, out));
    })),
    modelRerank: (_, handle, query, documents, options) => calls.scoped((scope, m): Later<ffi.Ranked[]> => {
      const { size } = m.memory.layout(ffi.loom_ranked), out = scope.keep(m.memory.allocate(size * documents.length));
      const ranked = calls.done((inner, module) => {
        const asked = module.memory.text(inner, query), list = textList(inner, module, documents);
        const how = module.memory.options(inner, ffi.loom_rerank_options, options);
        return module.wait((f) => f.loom_model_rerank(model(handle), asked, list, BigInt(documents.length), how, out));
      });
      return after(ranked, () => documents.map((_text, i) =>
        m.memory.read(ffi.loom_ranked, out + size * i) as unknown as ffi.Ranked));
    }),
    modelText: (_, handle, what) => calls.text((_scope, out, m) =>
      m.call((f) => f[`loom_model_${what}`](model(handle), out))),
    modelFingerprint: (_, handle, cacheType) => calls.text((_scope, out, m) =>
      m.call((f) => f.loom_model_fingerprint(model(handle), ffi.Dtype[cacheType], out))),
    modelCallGrammar: (_, handle, prompt, tools, rules) => calls.text((scope, out, m) => {
      const before = m.memory.text(scope, prompt), offered = m.memory.text(scope, tools);
      const how = m.memory.options(scope, ffi.loom_call_rules, rules);
      return m.call((f) => f.loom_model_call_grammar(model(handle), before, offered, how, out));
    }),
    modelParseReply: (_, handle, text, prompt, tools) => parseReply(calls, model(handle), text, prompt, tools),
    modelTokenizer: (_, handle) => calls.add("tokenizer", calls.out((_scope, out, m) =>
      m.call((f) => f.loom_model_tokenizer(model(handle), out)))),
    tokenizerBytes: (_, handle, token) => calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16));
      calls.check(m.call((f) => f.loom_tokenizer_token_bytes(tokenizer(handle), token, out, out + 8)));
      const address = m.memory.readAddress(out);
      const bytes = m.memory.bytes(address, Number(m.memory.view.getBigInt64(out + 8, true))).slice();
      m.call((f) => f.loom_free(address));
      return bytes;
    }),
    tokenizerSpecial: (_, handle) => calls.ids((_scope, ids, count, m) =>
      m.call((f) => f.loom_tokenizer_special_tokens(tokenizer(handle), ids, count))),
    tokenizerId: (_, handle, token) => calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(8)), text = m.memory.text(scope, token);
      calls.check(m.call((f) => f.loom_tokenizer_token_id(tokenizer(handle), text, out)));
      return m.memory.view.getInt32(out, true);
    }),
  };
}
