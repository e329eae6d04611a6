// loom run: a prompt in, text out; or a conversation.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "../hub/resolve.hpp"
#include "../models/modelfile.hpp"
#include "../shared/memory_report.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "beams.hpp"
#include "chat.hpp"
#include "sampling_flags.hpp"

namespace loom::cli {
namespace {

struct RunFlags {
  EngineFlags engine;
  ModelFlags model;
  std::string prompt, text, file, system, date, tools_file, load, save, replay,
      on_full = "drop-oldest";
  std::vector<std::string> template_args;
  std::optional<Command> command;
  std::vector<ChatTurn> messages;  // turns before the first question
  bool chat = false, no_thinking = false, hide_thinking = false, no_history = false,
       no_echo = false, force = false, json = false, quiet = false;
  Option prompt_option, text_option;
  SamplingFlags sampling;
  std::string draft;      // a model
  std::string lookup_in;  // a text
  int64_t guesses = 8, texts = 1, beams = 0;
  OptionFlags beaming;  // BeamOptions
  int64_t context = 0, chunk = 0;
  std::string cache_type = "float32";
  MemoryReport memory;
};

// Whether a command-line value is JSON; anything else is text.
bool is_json(const std::string& value) {
  if (value == "true" || value == "false" || value == "null") return true;
  if (value.empty() || value.find_first_of("[{\"") == 0) return !value.empty();
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  return read.ec == std::errc() && read.ptr == end && std::isfinite(number);
}

// NAME=VALUE as a member of a JSON object: a JSON value is used as such, any other is text.
Result<std::string> template_variables(const RunFlags& f) {
  std::string out = f.no_thinking ? "{\"enable_thinking\": false" : "{";
  for (const std::string& argument : f.template_args) {
    const size_t equals = argument.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error{Code::invalid_argument,
                   "--template-arg needs NAME=VALUE, not " + printable(argument), "", -1};
    const std::string value = argument.substr(equals + 1);
    out += out.size() > 1 ? ", " : "";
    out += Json::string(argument.substr(0, equals)).text() + ": ";
    out += is_json(value) ? value : Json::string(value).text();
  }
  return out + "}";
}

Result<ChatOptions> chat_options(const RunFlags& f) {
  ChatOptions options;
  options.date = f.date;
  LOOM_ASSIGN(options.variables, template_variables(f));
  if (f.tools_file.empty()) return options;
  LOOM_ASSIGN(const uint64_t limit, f.model.memory.text_limit());
  LOOM_ASSIGN(options.tools, read_text(f.tools_file, limit));
  return options;
}

class Runner {
 public:
  Runner(const RunFlags& flags, GenerateOptions generate, const Engine& engine, const Model& model,
         const Model* draft)
      : f_(flags), generate_(std::move(generate)), engine_(engine), model_(model), draft_(draft) {}

  // Prints a text and its continuation.
  int complete(const std::string& prompt) {
    Result<std::vector<TokenId>> ids = model_.tokenize(prompt);
    if (!ids.ok()) return fail(ids.error());
    if (f_.beams > 0) return search(prompt, *ids);
    Result<ModelSession> session = make_session(static_cast<int64_t>(ids->size()));
    if (!session.ok()) return fail(session.error());
    f_.memory.mark("session made");
    if (const int code = check_room(*session, *ids); code != kDone) return code;
    for (int64_t i = 0; i < f_.texts; ++i) {
      if (!f_.json && !f_.no_echo) echo_ = prompt;
      session->rewind(0);
      const int code = report(*ids, generate(*session, *ids, i), i);
      if (code != kDone) return code;
    }
    return kDone;
  }

  // Answers one question, or all that a person asks.
  int chat(const std::string* question) {
    ChatFlags flags;
    const int64_t length = question != nullptr ? static_cast<int64_t>(question->size()) + 64 : 4096;
    const Result<ModelSessionOptions> session = session_options(length);
    if (!session.ok()) return fail(session.error());
    flags.conversation.system = f_.system;
    Result<ChatOptions> templating = chat_options(f_);
    if (!templating.ok()) return fail(templating.error());
    flags.conversation.templating = std::move(*templating);
    flags.conversation.context = session->context;
    flags.conversation.chunk = session->chunk;
    flags.conversation.cache_type = session->cache_type;
    flags.conversation.device_failed = session->device_failed;
    const Result<WhenFull> on_full = parse_when_full(f_.on_full);
    if (!on_full.ok()) return fail(on_full.error());
    flags.conversation.on_full = *on_full;
    flags.generate = generate_;
    if (const Status status = suggest(flags.generate.sampler); !status.ok())
      return fail(status.error());
    flags.messages = f_.messages;
    flags.load = f_.load;
    flags.save = f_.save;
    flags.replay = f_.replay;
    flags.hide_thinking = f_.hide_thinking;
    flags.no_history = f_.no_history;
    flags.json = f_.json;
    flags.quiet = f_.quiet;
    flags.print_json = [this](const Reply& reply) {
      const Generation& g = reply.generation;
      print_json(reply.prompt_ids, g, rate(g.prompt_tokens, g.prefill_seconds),
                 rate(g.decode_steps, g.decode_seconds), generate_.sampler.seed);
    };
    return talk(model_, flags, question);
  }

 private:
  // The likeliest texts, of which --n are written.
  int search(const std::string& prompt, const std::vector<TokenId>& ids) {
    const Result<ModelSessionOptions> session = session_options(static_cast<int64_t>(ids.size()));
    if (!session.ok()) return fail(session.error());
    BeamOptions options;
    if (const Status read = f_.beaming.read(options); !read.ok()) return fail(read.error());
    options.num_beams = f_.beams;
    options.max_tokens = generate_.max_tokens;
    options.session = *session;
    return write_beams(model_, prompt, ids, std::move(options),
                       {f_.texts, f_.json, f_.quiet, f_.no_echo});
  }

  // Adopts the model's sampling options that the command line does not set; notes it once.
  Status suggest(SamplerOptions& sampler) const {
    LOOM_ASSIGN(const std::optional<SamplerOptions> suggested, model_.suggested_sampling());
    if (!suggested) return {};
    std::string shown_text;
    const auto take = [&](const char* option, auto SamplerOptions::*field) {
      if (f_.command->given(option) || sampler.*field == (*suggested).*field) return;
      sampler.*field = (*suggested).*field;
      shown_text +=
          fmt::format("{}{} {}", shown_text.empty() ? "" : ", ", option + 2, sampler.*field);
    };
    take("--temperature", &SamplerOptions::temperature);
    take("--top-k", &SamplerOptions::top_k);
    take("--top-p", &SamplerOptions::top_p);
    take("--min-p", &SamplerOptions::min_p);
    take("--repetition-penalty", &SamplerOptions::repetition_penalty);
    if (sampler.repetition_penalty != 1.0f)
      take("--repetition-window", &SamplerOptions::repetition_window);
    if (!shown_text.empty() && !f_.quiet) note("the model asks for " + shown_text);
    return {};
  }

  // A session with room for the prompt and the reply, within the model's context.
  Result<ModelSession> make_session(int64_t prompt_tokens) {
    LOOM_ASSIGN(const ModelSessionOptions options, session_options(prompt_tokens));
    if (draft_ != nullptr) {
      ModelSessionOptions smaller = options;
      smaller.context = std::min(options.context, draft_->info().context);
      LOOM_ASSIGN(ModelSession session, draft_->session(smaller));
      draft_session_.emplace(std::move(session));
    }
    return model_.session(options);
  }
  Result<ModelSessionOptions> session_options(int64_t prompt_tokens) const {
    ModelSessionOptions options;
    const int64_t limit = model_.info().context;
    const int64_t requested = prompt_tokens + std::min(generate_.max_tokens, limit);
    options.context =
        f_.context > 0 ? f_.context : std::min(limit, std::max<int64_t>(requested, 1));
    options.chunk = f_.chunk;
    const Result<DType> cache = parse_dtype(f_.cache_type);
    if (!cache.ok()) return cache.error();
    options.cache_type = *cache;
    if (!f_.engine.strict) {
      options.device_failed = [](const Error& why) {
        const std::string line = why.str();
        fmt::print(stderr, "loom: note: the GPU failed, the CPU goes on: {}\n",
                   printable(line, line.size()));
      };
    }
    return options;
  }

  // Checks that the prompt fits into the session. A text that grew too long is not a usage error,
  // so it has its own message and exit code.
  static int check_room(const ModelSession& session, const std::vector<TokenId>& prompt) {
    const auto requested = session.position() + static_cast<int64_t>(prompt.size());
    if (requested <= session.context()) return kDone;
    return fail(kFailed, fmt::format("the context is full: the text has {} tokens, {} have room; "
                                     "begin again with less text, or give more with --context",
                                     requested, session.context()));
  }

  uint64_t seed(int64_t text) const { return choice_seed(generate_.sampler.seed, text); }

  Result<Generation> generate(ModelSession& session, const std::vector<TokenId>& prompt,
                              int64_t text_number) {
    GenerateOptions options = generate_;
    options.sampler.seed = seed(text_number);
    if (draft_session_.has_value()) options.draft = &*draft_session_;
    Progress bar("reading the prompt", "tokens", f_.quiet || f_.json);
    options.prefill_progress = [&](int64_t done, int64_t total) {
      if (!echo_.empty()) write_out(std::exchange(echo_, {}));  // the options were valid
      bar.update(done, total);
      if (done == total) {
        bar.finish();
        f_.memory.mark("prompt read");
      }
      return !interrupted();
    };
    return session.generate(prompt, options, [&](std::string_view text) {
      if (!f_.json) write_out(text);
      return !interrupted();
    });
  }

  int report(const std::vector<TokenId>& prompt, Result<Generation> result, int64_t text_number) {
    if (!result.ok()) return fail(result.error());
    const Generation& g = *result;
    const double prefill = rate(g.prompt_tokens, g.prefill_seconds);
    const double decode = rate(g.decode_steps, g.decode_seconds);
    if (f_.json) {
      print_json(prompt, g, prefill, decode, seed(text_number));
    } else {
      write_out("\n");
      if (!f_.quiet && stderr_is_terminal()) {
        const std::string unknown =
            g.unknown_tokens > 0 ? fmt::format(" ({} without text)", g.unknown_tokens) : "";
        const std::string guessed =
            g.guessed > 0 ? fmt::format(", {} of {} guesses right", g.accepted, g.guessed) : "";
        fmt::print(stderr,
                   "[{} tokens read, {:.1f}/s; {} written{}, {:.1f}/s{}; stop: {}; {} on {}, {} "
                   "threads]\n",
                   g.prompt_tokens, prefill, g.token_ids.size(), unknown, decode, guessed,
                   stop_reason_name(g.stop), dtype_name(model_.info().dtype), engine_.info().isa,
                   engine_.info().threads);
      }
    }
    return interrupted() ? fail_interrupted() : kDone;
  }

  void print_json(const std::vector<TokenId>& prompt, const Generation& g, double prefill,
                  double decode, uint64_t seed) const {
    JsonObject out;
    out.set("text", g.text)
        .set("token_ids", g.token_ids)
        .set("unknown_tokens", g.unknown_tokens)
        .set("prompt_token_ids", prompt)
        .set("stop_reason", stop_reason_name(g.stop))
        .set("prefill_tokens_per_s", prefill)
        .set("decode_tokens_per_s", decode)
        .set("seed", static_cast<int64_t>(seed))
        .set("dtype", dtype_name(model_.info().dtype))
        .set("activations", activations_name(engine_.info().activations))
        .set("isa", engine_.info().isa)
        .set("threads", engine_.info().threads)
        .set("peak_rss_bytes", peak_rss_bytes());
    if (draft_ != nullptr || generate_.lookup) {
      out.set("guessed_tokens", g.guessed)
          .set("accepted_tokens", g.accepted)
          .set("passes", g.passes);
    }
    out.print();
  }

  static double rate(int64_t count, double seconds) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
  }

  const RunFlags& f_;
  const GenerateOptions generate_;
  const Engine& engine_;
  const Model& model_;
  const Model* draft_;  // may be null
  std::optional<ModelSession> draft_session_;
  std::string echo_;  // the prompt, until it is printed
};

// The text of --file or stdin.
Result<std::string> read_prompt(const RunFlags& f) {
  LOOM_ASSIGN(const uint64_t limit, f.model.memory.text_limit());
  return f.file.empty() ? read_stdin(limit) : read_text(f.file, limit);
}

// Sets what a Modelfile says and the line does not.
Status apply_modelfile(RunFlags& f) {
  LOOM_ASSIGN(const Modelfile file, read_modelfile(f.model.folder));
  for (const auto& [flag, values] : run_flags(file)) {
    const Status set = f.command->set_default("--" + flag, values);
    if (!set.ok()) return error_in_file(set.error(), file.path);
  }
  if (!file.value("num_keep").empty() && !f.quiet)
    note("PARAMETER num_keep is for loom serve; a chat keeps its system text");
  if (!file.system.empty()) LOOM_TRY(f.command->set_default("--system", {file.system}));
  f.messages = file.messages;
  f.model.chat_template = file.chat_template;
  f.chat = f.chat || !f.system.empty() || !f.messages.empty() || !file.chat_template.empty();
  if (f.chat && f.texts > 1)
    return Error{Code::invalid_argument, "this Modelfile makes a chat, and --n is for texts",
                 file.path, -1};
  LOOM_ASSIGN(f.model.folder, resolve_model_path(file.from, f.quiet || f.json));
  return {};
}

int run(RunFlags& f) {
  if (is_modelfile(f.model.folder)) {
    if (const Status applied = apply_modelfile(f); !applied.ok()) return fail(applied.error());
  }
  if (const Status writable = f.memory.check(Outputs(f.force)); !writable.ok())
    return fail(writable.error());
  if (f.text_option.given()) f.prompt = f.text;
  const bool has_prompt = f.prompt_option.given() || f.text_option.given();
  const bool saved = !f.load.empty() || !f.save.empty() || !f.replay.empty();
  const bool no_text = !has_prompt && f.file.empty();
  const bool chat = f.chat || saved || (no_text && stdin_is_terminal());
  const bool asks_person = chat && no_text;
  const bool for_chat = !f.tools_file.empty() || !f.template_args.empty() || f.no_thinking;
  if (f.beams > 0 && (chat || !f.sampling.only_length() || !f.draft.empty())) {
    return fail(kUsage,
                "--beams finds the likeliest texts: it goes with --max-tokens, --length-penalty "
                "and --n, and with no other option of how tokens are drawn, and no chat");
  }
  if (f.beams > 0 && f.texts > f.beams)
    return fail(kUsage, "--n cannot be more than --beams, which is how many texts are found");
  if (!chat && for_chat)
    return fail(kUsage, "--tools, --template-arg and --no-thinking are for a chat; add --chat");
  Result<std::string> prompt = f.prompt;
  if (!has_prompt && !asks_person) prompt = read_prompt(f);
  if (!prompt.ok()) return fail(prompt.error());
  const Result<uint64_t> limit = f.model.memory.text_limit();
  if (!limit.ok()) return fail(limit.error());
  Result<GenerateOptions> options = f.sampling.options(*limit);
  if (!options.ok()) return fail(options.error());
  if (!f.draft.empty()) options->guesses = f.guesses;
  if (!f.lookup_in.empty() && f.sampling.lookup == 0)
    return fail(kUsage, "--lookup-in says where --lookup N looks; add --lookup 8");
  Result<Engine> engine = f.engine.create(f.model.memory);
  if (!engine.ok()) return fail(engine.error());
  f.memory.begin(*engine);
  Result<Model> model = f.model.load(*engine, f.quiet);
  if (!model.ok()) return fail(model.error());
  f.memory.mark("loaded");
  if (chat) {
    const std::vector<ChatTurn> greeting = {{"user", ""}};
    if (!model->info().has_tokenizer) return fail(model->tokenize("").error());
    if (f.chat && !model->info().has_chat_template)
      return fail(model->render_chat(greeting).error());
  }
  std::optional<Model> draft;
  if (!f.draft.empty()) {
    ModelFlags smaller = f.model;
    smaller.folder = f.draft;
    smaller.dtype.clear();
    smaller.chat_template.clear();
    Result<Model> loaded = smaller.load(*engine, f.quiet);
    if (!loaded.ok()) return fail(loaded.error());
    draft = std::move(*loaded);
  }
  std::optional<LookupText> lookup_text;
  if (!f.lookup_in.empty()) {
    const Result<std::string> text = read_text(f.lookup_in, *limit);
    if (!text.ok()) return fail(text.error());
    const Result<std::vector<TokenId>> ids = model->tokenize(*text);
    if (!ids.ok()) return fail(ids.error());
    options->lookup_text = &lookup_text.emplace(*ids);
  }
  Runner runner(f, std::move(*options), *engine, *model, draft.has_value() ? &*draft : nullptr);
  const int code = chat ? runner.chat(asks_person ? nullptr : &*prompt) : runner.complete(*prompt);
  const Status written = f.memory.finish("run", f.quiet || f.json);
  return written.ok() ? code : fail(written.error());
}

}  // namespace

Verb add_run(Command app) {
  auto f = std::make_shared<RunFlags>();
  const Command verb = app.command("run", "Continue a prompt, or chat with a model.");
  verb.examples(
      "  loom run models/stories.entity \"Once upon a time\" --temperature 0.8 --seed 7\n"
      "  loom run models/stories.entity -p \"The name is\" --json-schema schema.json\n"
      "  loom run models/stories.entity -p \"Once\" --temperature 1 --n 3 --min-p 0.05\n"
      "  loom run models/stories.entity -p \"Once\" --beams 4 --max-tokens 30\n"
      "  loom run models/stories.entity --chat\n"
      "  loom run hf:bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M\n"
      "  printf 'Tell me a story.\\nAnd then?\\n' | loom run models/stories.entity --chat");
  f->command = verb;
  f->model.add(verb, true, true);
  f->text_option = verb.option("TEXT", f->text, "The text to continue");
  f->prompt_option =
      verb.option("-p,--prompt", f->prompt, "The same, as an option").excludes(f->text_option);
  verb.option("-f,--file", f->file, "Read the prompt from a file; -: from stdin")
      .excludes(f->prompt_option)
      .excludes(f->text_option);
  const Command talk = verb.group("Chat"), drafts = verb.group("Drafts"),
                memory = verb.group("Context"), output = verb.group("Output");
  const Option chat = talk.flag(
      "--chat", f->chat,
      "Use the model's chat template; without -p, talk line by line (on a terminal, that is "
      "what happens without a prompt)");
  talk.option("--system", f->system, "System text of a chat");
  talk.option("--on-full", f->on_full,
              "Where a chat fills the context: drop-oldest: the oldest turns go; stop: an error")
      .show_default();
  talk.option("--load", f->load, "Go on with a chat that was saved");
  talk.option("--save", f->save, "Write the chat there after each reply");
  talk.option("--replay", f->replay,
              "Say a saved chat once more; exit code 5 where a reply differs");
  talk.flag("--hide-thinking", f->hide_thinking, "Leave out the text between <think> tags");
  talk.flag("--no-history", f->no_history, "Keep no file of what was typed");
  talk.option("--date", f->date,
              "Today for a chat template that tells it: 2024-07-26 (default: UTC)");
  talk.option("--tools", f->tools_file,
              "A JSON file of functions that the model may call in a chat; docs/chat.md");
  talk.option("--template-arg", f->template_args,
              "NAME=VALUE for the chat template; may be given several times")
      .one_at_a_time();
  talk.flag("--no-thinking", f->no_thinking, "Tell the chat template enable_thinking=false");
  f->sampling.add(verb);
  const Option draft =
      drafts
          .option("--draft", f->draft,
                  "A smaller model with the same tokens, which guesses; same text, faster")
          .names_model();
  drafts.option("--guesses", f->guesses, "Tokens that it guesses at a time")
      .range(1, 64)
      .show_default()
      .needs(draft);
  drafts.option("--lookup-in", f->lookup_in,
                "A text file that --lookup looks in as well: what the model wrote or will quote");
  verb.option("--n", f->texts, "Texts to write, each with a seed of its own")
      .range(1, 1024)
      .show_default()
      .excludes(chat);
  const Option beams =
      verb.option("--beams", f->beams,
                  "Write the likeliest text that following N texts at a time finds; 0: draw tokens")
          .range(0, 64)
          .show_default();
  f->beaming.add(verb, list_options(BeamOptions()), {"beams"});
  f->beaming.option("length-penalty").needs(beams);
  memory
      .option("--cache-type", f->cache_type,
              "Number type of keys and values: float32, float16, bfloat16, q8_0 or q4_0")
      .show_default();
  memory.option("--context", f->context, "Positions to keep (default: as many as needed)")
      .range(0, int64_t{1} << 40);
  memory
      .option("--chunk", f->chunk,
              "Prompt tokens per pass; changes speed, never the text. 0: 256, on a GPU 2048")
      .range(0, 1 << 20)
      .show_default();
  f->engine.add(verb);
  f->engine.add_device(verb);
  f->memory.add(output);
  add_force(output, f->force);
  output.flag("--no-echo", f->no_echo, "Print the continuation without the prompt");
  output.flag("--json", f->json, "One JSON object instead of text");
  output.flag("--quiet", f->quiet, "No progress and no statistics");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
