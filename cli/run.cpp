// loom run: a prompt in, text out; or a conversation.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "chat.hpp"
#include "progress.hpp"
#include "verbs.hpp"

namespace loom::cli {
namespace {

struct RunFlags {
  EngineFlags engine;
  ModelFlags model;
  std::string prompt, file, system, date;
  bool chat = false, no_echo = false, json = false, quiet = false;
  Option prompt_option;
  GenerateOptions generate;
  int64_t context = 0, chunk = 0;
};

class Runner {
 public:
  Runner(const RunFlags& flags, const Engine& engine, const Model& model)
      : f_(flags), engine_(engine), model_(model) {}

  // A text and its continuation.
  int complete(const std::string& prompt) {
    Result<std::vector<TokenId>> ids = model_.tokenize(prompt);
    if (!ids.ok()) return fail(ids.error());
    Result<ModelSession> session = make_session(static_cast<int64_t>(ids->size()));
    if (!session.ok()) return fail(session.error());
    if (const int code = check_room(*session, *ids); code != kDone) return code;
    if (!f_.json && !f_.no_echo) echo_ = prompt;
    return report(*ids, generate(*session, *ids));
  }

  // One question, or as many as a person asks.
  int talk(const std::string* question) {
    const std::vector<ChatTurn> greeting = {{"user", ""}};
    if (!model_.info().has_chat_template) return fail(model_.render_chat(greeting).error());
    const int64_t length = question != nullptr ? static_cast<int64_t>(question->size()) + 64 : 4096;
    Result<ModelSession> session = make_session(length);
    if (!session.ok()) return fail(session.error());
    Chat chat(model_, *session, f_.system, f_.date);
    if (question != nullptr) return answer(chat, *question);
    std::string line;
    while (read_line(line)) {
      if (line.empty()) continue;
      const int code = answer(chat, line);
      if (code != kDone) return code;
    }
    return interrupted() ? fail_interrupted() : kDone;
  }

 private:
  int answer(Chat& chat, const std::string& question) {
    Result<Chat::Piece> piece = chat.ask(question);
    if (!piece.ok()) return fail(piece.error());
    if (const int code = check_room(chat.session(), piece->fresh); code != kDone) return code;
    Result<Generation> reply = generate(chat.session(), piece->fresh);
    if (reply.ok()) chat.add_reply(*reply);
    return report(piece->all, std::move(reply));
  }

  static bool read_line(std::string& line) {
    if (stdin_is_terminal()) fmt::print(stderr, "> ");
    line.clear();
    int c = 0;
    while ((c = std::fgetc(stdin)) != EOF && c != '\n') line += static_cast<char>(c);
    if (c == EOF && line.empty() && stdin_is_terminal()) fmt::print(stderr, "\n");
    return !interrupted() && (c != EOF || !line.empty());
  }

  // Room for the prompt and what may follow, and no more than the model was made for.
  Result<ModelSession> make_session(int64_t prompt_tokens) {
    ModelSessionOptions options;
    const int64_t limit = model_.info().context;
    const int64_t wanted = prompt_tokens + std::min(f_.generate.max_tokens, limit);
    options.context = f_.context > 0 ? f_.context : std::min(limit, std::max<int64_t>(wanted, 1));
    options.chunk = f_.chunk;
    if (!f_.engine.strict) {
      options.device_failed = [](const Error& why) {
        const std::string line = why.str();
        fmt::print(stderr, "loom: note: the GPU failed, the CPU goes on: {}\n",
                   printable(line, line.size()));
      };
    }
    return model_.session(options);
  }

  // Does the prompt fit what the session still has room for? A text that grew too long is no wrong
  // command line, so it has its own message and exit code.
  static int check_room(const ModelSession& session, const std::vector<TokenId>& prompt) {
    const auto wanted = session.position() + static_cast<int64_t>(prompt.size());
    if (wanted <= session.context()) return kDone;
    return fail(kFailed, fmt::format("the context is full: the text has {} tokens, {} have room; "
                                     "begin again with less text, or give more with --context",
                                     wanted, session.context()));
  }

  Result<Generation> generate(ModelSession& session, const std::vector<TokenId>& prompt) {
    GenerateOptions options = f_.generate;
    Progress bar("reading the prompt", "tokens", f_.quiet || f_.json);
    options.prefill_progress = [&](int64_t done, int64_t total) {
      if (!echo_.empty()) write_out(std::exchange(echo_, {}));  // the options were good
      bar.update(done, total);
      if (done == total) bar.finish();
      return !interrupted();
    };
    return session.generate(prompt, options, [&](std::string_view text) {
      if (!f_.json) write_out(text);
      return !interrupted();
    });
  }

  int report(const std::vector<TokenId>& prompt, Result<Generation> result) {
    if (!result.ok()) return fail(result.error());
    const Generation& g = *result;
    const double prefill = rate(g.prompt_tokens, g.prefill_seconds);
    const double decode = rate(g.decode_steps, g.decode_seconds);
    if (f_.json) {
      print_json(prompt, g, prefill, decode);
    } else {
      write_out("\n");
      if (!f_.quiet && stderr_is_terminal()) {
        const std::string unknown =
            g.unknown_tokens > 0 ? fmt::format(" ({} without text)", g.unknown_tokens) : "";
        fmt::print(stderr,
                   "[{} tokens read, {:.1f}/s; {} written{}, {:.1f}/s; stop: {}; {} on {}, {} "
                   "threads]\n",
                   g.prompt_tokens, prefill, g.token_ids.size(), unknown, decode,
                   stop_reason_name(g.stop), dtype_name(model_.info().dtype), engine_.info().isa,
                   engine_.info().threads);
      }
    }
    return interrupted() ? fail_interrupted() : kDone;
  }

  void print_json(const std::vector<TokenId>& prompt, const Generation& g, double prefill,
                  double decode) const {
    JsonObject()
        .set("text", g.text)
        .set("token_ids", g.token_ids)
        .set("unknown_tokens", g.unknown_tokens)
        .set("prompt_token_ids", prompt)
        .set("stop_reason", stop_reason_name(g.stop))
        .set("prefill_tokens_per_s", prefill)
        .set("decode_tokens_per_s", decode)
        .set("seed", static_cast<int64_t>(f_.generate.sampler.seed))
        .set("dtype", dtype_name(model_.info().dtype))
        .set("activations", activations_name(engine_.info().activations))
        .set("isa", engine_.info().isa)
        .set("threads", engine_.info().threads)
        .set("peak_rss_bytes", peak_rss_bytes())
        .print();
  }

  static double rate(int64_t count, double seconds) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
  }

  const RunFlags& f_;
  const Engine& engine_;
  const Model& model_;
  std::string echo_;  // the prompt, until it is printed
};

void add_sampling(Command verb, GenerateOptions& g) {
  SamplerOptions& s = g.sampler;
  verb.option("--max-tokens", g.max_tokens, "Tokens to write at most")
      .range(0, int64_t{1} << 40)
      .show_default();
  verb.option("--temperature", s.temperature, "0: always the most likely token")
      .range(0.0, 1e6)
      .show_default();
  verb.option("--seed", s.seed, "Of the draws; the same seed gives the same text")
      .range(0, INT64_MAX)
      .show_default();
  verb.option("--top-k", s.top_k, "Draw among the K most likely tokens; 0: all")
      .range(0, INT32_MAX)
      .show_default();
  verb.option("--top-p", s.top_p, "Draw among the fewest tokens that hold this probability")
      .range(0.0, 1.0)
      .show_default();
  verb.option("--min-p", s.min_p, "Leave out tokens below this share of the best one's")
      .range(0.0, 1.0)
      .show_default();
  verb.option("--repetition-penalty", s.repetition_penalty, "Above 1: repeat less").show_default();
  verb.option("--repetition-window", s.repetition_window, "Tokens it looks back at; 0: all")
      .range(0, INT32_MAX)
      .show_default();
  verb.option("--stop", g.stop, "End before this text; may be given several times").one_at_a_time();
  verb.flag("--ignore-eos", g.ignore_eos, "Go on where the model would end");
}

// What --file or stdin says.
Result<std::string> read_prompt(const RunFlags& f) {
  LOOM_ASSIGN(const uint64_t limit, f.model.memory.text_limit());
  return f.file.empty() ? read_stdin(limit) : read_text(f.file, limit);
}

int run(const RunFlags& f) {
  const bool has_prompt = f.prompt_option.given();
  const bool asks_person = f.chat && !has_prompt && f.file.empty();
  if (!f.chat && !has_prompt && f.file.empty() && stdin_is_terminal())
    return fail(kUsage, "no prompt; give one with -p TEXT, -f FILE, on stdin, or use --chat");
  Result<std::string> prompt = f.prompt;
  if (!has_prompt && !asks_person) prompt = read_prompt(f);
  if (!prompt.ok()) return fail(prompt.error());
  Result<Engine> engine = f.engine.create(f.model.memory);
  if (!engine.ok()) return fail(engine.error());
  Result<Model> model = f.model.load(*engine, f.quiet);
  if (!model.ok()) return fail(model.error());
  Runner runner(f, *engine, *model);
  if (f.chat) return runner.talk(asks_person ? nullptr : &*prompt);
  return runner.complete(*prompt);
}

}  // namespace

Verb add_run(Command app) {
  auto f = std::make_shared<RunFlags>();
  const Command verb = app.command("run", "Write a continuation of a prompt, or talk.");
  verb.examples(
      "  loom run models/stories.entity -p \"Once upon a time\" --temperature 0.8 --seed 7\n"
      "  loom run models/stories.entity --chat");
  f->model.add(verb);
  f->prompt_option = verb.option("-p,--prompt", f->prompt, "The text to continue");
  verb.option("-f,--file", f->file, "Read the prompt from a file; -: from stdin")
      .excludes(f->prompt_option);
  verb.flag("--chat", f->chat, "Use the model's chat template; without -p, talk line by line");
  verb.option("--system", f->system, "What the model is told before a chat");
  verb.option("--date", f->date,
              "Today for a chat template that tells it: 2024-07-26 (default: UTC)");
  add_sampling(verb, f->generate);
  verb.option("--context", f->context, "Positions to keep (default: as many as needed)")
      .range(0, int64_t{1} << 40);
  verb.option("--chunk", f->chunk,
              "Prompt tokens per pass; changes speed, never the text. 0: 256, on a GPU 2048")
      .range(0, 1 << 20)
      .show_default();
  f->engine.add(verb);
  f->engine.add_device(verb);
  verb.flag("--no-echo", f->no_echo, "Print the continuation without the prompt");
  verb.flag("--json", f->json, "One JSON object instead of text");
  verb.flag("--quiet", f->quiet, "No progress and no statistics");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
