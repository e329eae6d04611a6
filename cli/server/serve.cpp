// loom serve: serves a model to clients of OpenAI, Anthropic, Ollama or llama.cpp.
#include "serve/log_file.hpp"
#include "serve/server.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "../hub/name.hpp"
#include "../shared/progress.hpp"
#include "../shared/tls_flags.hpp"
#include "../shared/verbs.hpp"

namespace loom::cli {
namespace {

namespace fs = std::filesystem;

struct ServeFlags {
  EngineFlags engine;
  MemoryFlags memory;
  TlsFlags tls;
  std::vector<std::string> models;
  std::string folder, dtype, template_text, template_file;
  std::string host = "127.0.0.1", alias, tags, key_file, log, cache_type = "float32";
  int64_t models_most = 3, models_memory = 0, keep_alive = 300, sleep = -1;
  int64_t port = 8080, parallel = 4, queue = 64, context = 0, chunk = 256, grace = 10;
  std::string defaults, slot_folder, draft;
  int64_t guesses = 8, lookup = 0;
  int64_t slot_most = 64, resume = 60;
  std::vector<std::string> allow_hosts, allow_origins, without, template_args;
  bool allow_nonfinite = false;
  bool strict_fields = false, no_thinking = false, no_prefill = false, verbose = false,
       context_shift = false, openapi = false, quiet = false;
};

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string pulled = pulled_model_name(path);
  return pulled.empty() ? path.substr(path.find_last_of('/') + 1) : pulled;
}

// Keys are never given on the command line, where every user of the machine can read them.
Result<std::vector<std::string>> read_keys(const ServeFlags& f) {
  std::vector<std::string> keys;
  if (const char* key = std::getenv("LOOM_API_KEY"); key != nullptr && *key != '\0')
    keys.emplace_back(key);
  if (f.key_file.empty()) return keys;
  LOOM_ASSIGN(const std::string text, read_text(f.key_file));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) keys.push_back(std::move(line));
    at = end + 1;
  }
  if (keys.empty())
    return Error{Code::invalid_argument, "no key is in it; put one on each line", f.key_file, -1};
  return keys;
}

// NAME=VALUE as a JSON object; JSON values are used as such, others are texts.
Result<std::string> served_variables(const ServeFlags& f) {
  core::JsonValue out = core::JsonValue::object();
  if (f.no_thinking) out.add("enable_thinking", core::JsonValue::boolean(false));
  for (const std::string& argument : f.template_args) {
    const size_t equals = argument.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error{Code::invalid_argument, "--template-arg needs NAME=VALUE", argument, -1};
    const std::string value = argument.substr(equals + 1);
    Result<core::JsonValue> json = core::parse_json(value, "value");
    out.add(argument.substr(0, equals),
            json.ok() ? std::move(*json) : core::JsonValue::string(value));
  }
  return out.members().empty() ? std::string() : core::dump_json(out);
}

// The parts of "a,b", without empty and repeated ones.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!word.empty() && std::ranges::find(out, word) == out.end()) out.push_back(std::move(word));
  }
  return out;
}

// Where it listens. "localhost" is its number.
std::vector<std::string> addresses_of(const ServeFlags& f) {
  std::vector<std::string> hosts = words_of(f.host);
  for (std::string& host : hosts)
    if (lower(host) == "localhost") host = "127.0.0.1";
  return hosts;
}

Result<core::LlmServerOptions> options_of(const ServeFlags& f, const Engine& engine) {
  core::LlmServerOptions options;
  const std::vector<std::string> hosts = addresses_of(f);
  if (!hosts.empty()) {
    options.address = hosts.front();
    options.more_addresses.assign(hosts.begin() + 1, hosts.end());
  }
  options.port = f.port;
  LOOM_ASSIGN(options.http.socket_mode, f.tls.socket_mode());
  LOOM_ASSIGN(options.keys, read_keys(f));
  options.hosts = f.allow_hosts;
  options.origins = f.allow_origins;
  options.without = f.without;
  options.service.defaults = f.defaults;
  options.models_most = f.models_most;
  options.models_memory = f.models_memory * 1000000;
  options.keep_seconds = f.keep_alive;
  options.sleep_seconds = f.sleep;
  LOOM_ASSIGN(options.service.variables, served_variables(f));
  options.service.version = engine.info().version;
  options.http.memory = engine;
  options.service.strict = f.strict_fields;
  options.service.prefill = !f.no_prefill;
  options.service.verbose = f.verbose;
  options.service.resume.seconds = f.resume;
  options.service.context_shift = f.context_shift;
  std::error_code bad;
  if (!f.slot_folder.empty() && !fs::is_directory(f.slot_folder, bad))
    return Error{Code::not_found, "there is no such folder for --slot-save-path", f.slot_folder,
                 -1};
  options.service.slots = {f.slot_folder, f.slot_most};
  options.service.scheduler.sessions = f.parallel;
  options.service.scheduler.waiting = f.queue;
  options.service.scheduler.session.context = f.context;
  options.service.scheduler.lookup = f.lookup > 0;
  options.service.scheduler.guesses = std::max(f.draft.empty() ? 0 : f.guesses, f.lookup);
  LOOM_ASSIGN(options.service.scheduler.session.cache_type, parse_dtype(f.cache_type));
  options.service.scheduler.session.chunk = f.chunk;
  if (!f.engine.strict) {
    options.service.scheduler.session.device_failed = [](const Error& why) {
      note("the GPU failed, the CPU goes on: " + why.str());
    };
  }
  return options;
}

// The file is opened before anything else.
Result<core::LogLine> open_log(const std::string& path) {
  if (path.empty()) return core::LogLine();
  return core::log_to_file(path, [](const std::string& text) { note(text); });
}

int64_t size_of(const std::string& path) {
  std::error_code bad;
  if (!fs::is_directory(path, bad)) {
    const auto size = fs::file_size(path, bad);
    return bad ? 0 : static_cast<int64_t>(size);
  }
  int64_t sum = 0;
  for (const auto& one : fs::directory_iterator(path, bad)) {
    const auto size = one.is_regular_file(bad) ? one.file_size(bad) : 0;
    if (one.path().extension() == ".safetensors" && !bad) sum += static_cast<int64_t>(size);
  }
  return sum;
}

// Models below a folder, by name: files, and folders with config.json.
Result<std::vector<std::string>> models_below(const std::string& folder) {
  std::error_code bad;
  std::vector<std::string> out;
  for (const auto& one : fs::directory_iterator(folder, bad)) {
    const std::string end = one.path().extension().string();
    const bool file = one.is_regular_file(bad) && (end == ".gguf" || end == ".entity");
    if (file || fs::exists(one.path() / "config.json", bad)) out.push_back(one.path().string());
  }
  if (bad) return Error{Code::not_found, "the folder cannot be read", folder, -1};
  std::ranges::sort(out);
  return out;
}

Result<std::string> template_of(const ServeFlags& f) {
  if (f.template_file.empty()) return f.template_text;
  return read_filled(f.template_file);
}

// A loaded model must be able to generate text, unless it is an encoder.
Result<Model> load_served(const ServeFlags& f, const Engine& engine, const std::string& path,
                          const std::string& chat_template) {
  Progress bar("loading", "tensors", f.quiet);
  ModelOptions loading;
  if (!f.dtype.empty()) {
    LOOM_ASSIGN(loading.dtype, parse_dtype(f.dtype));
  }
  loading.chat_template = chat_template;
  loading.allow_nonfinite = f.allow_nonfinite;
  loading.progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  LOOM_ASSIGN(Model model, Model::load(engine, path, loading));
  bar.finish();
  if (!f.quiet) note_unused(model);
  if (!model.info().has_tokenizer)
    return Error{Code::unsupported, "this model has no tokenizer, so it cannot answer with text",
                 path, -1};
  if (!f.quiet && !model.info().has_chat_template && !model.info().encoder)
    note(last_part(path) + " has no chat template: it completes texts, and chats are refused");
  return model;
}

// The draft model of the others, with the same tokens.
Result<std::optional<Model>> load_draft(const ServeFlags& f, const Engine& engine) {
  if (f.draft.empty()) return std::optional<Model>();
  LOOM_ASSIGN(Model draft, Model::load(engine, f.draft));
  return std::optional<Model>(std::move(draft));
}

Result<std::vector<core::ModelEntry>> entries_of(const ServeFlags& f, const Engine& engine) {
  std::vector<std::string> paths = f.models;
  if (!f.folder.empty()) {
    LOOM_ASSIGN(const std::vector<std::string> more, models_below(f.folder));
    paths.insert(paths.end(), more.begin(), more.end());
  }
  if (paths.empty()) {
    return Error{Code::invalid_argument, "no model to serve; name one, or a folder that has some",
                 f.folder, -1};
  }
  LOOM_ASSIGN(const std::string chat_template, template_of(f));
  std::vector<core::ModelEntry> out;
  for (const std::string& path : paths) {
    core::ModelEntry entry;
    entry.name = last_part(path);
    if (out.empty()) {
      entry.tags = words_of(f.tags);
      entry.aliases = words_of(f.alias);
      if (!entry.aliases.empty()) {
        entry.name = entry.aliases.front();
        entry.aliases.erase(entry.aliases.begin());
      }
    }
    entry.bytes = size_of(path);
    entry.load = [&f, &engine, path, chat_template] {
      return load_served(f, engine, path, chat_template);
    };
    if (entry.bytes == 0) return Error{Code::not_found, "there is no model", path, -1};
    const auto same = [&](const core::ModelEntry& one) {
      return one.name == entry.name ||
             std::ranges::find(one.aliases, entry.name) != one.aliases.end();
    };
    if (std::ranges::any_of(out, same))
      return Error{Code::invalid_argument, "two models have this name; serve one of them",
                   entry.name, -1};
    out.push_back(std::move(entry));
  }
  return out;
}

// Waits for a signal; then running texts may end.
int wait_and_stop(core::LlmServer& server, const ServeFlags& f) {
  while (!interrupted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    f.tls.reload([&](core::TlsContext context) { server.use_tls(std::move(context)); });
  }
  stop_without_haste();
  const core::SchedulerCounts counts = server.models().counts();
  if (!f.quiet && counts.running + counts.waiting > 0)
    note(fmt::format("{} texts end first; a second signal ends them",
                     counts.running + counts.waiting));
  const bool whole = server.drain(f.grace * 1000);
  if (!whole && !f.quiet) note(fmt::format("not all texts were whole after {} s", f.grace));
  return kDone;
}

int run(const ServeFlags& f) {
  Result<Engine> engine = f.engine.create(f.memory);
  if (!engine.ok()) return fail(engine.error());
  Result<core::LlmServerOptions> options = options_of(f, *engine);
  if (!options.ok()) return fail(options.error());
  if (f.openapi) {
    write_line(core::LlmServer::openapi(*options));
    return kDone;
  }
  const std::vector<std::string> hosts = addresses_of(f);
  Result<core::TlsContext> tls = f.tls.server(hosts);
  if (!tls.ok()) return fail(tls.error());
  options->tls = std::move(*tls);
  Result<core::LogLine> log = open_log(f.log);
  if (!log.ok()) return fail(log.error());
  options->log = std::move(*log);
  Result<std::vector<core::ModelEntry>> entries = entries_of(f, *engine);
  if (!entries.ok()) return fail(entries.error());
  const size_t models = entries->size();
  Result<std::optional<Model>> draft = load_draft(f, *engine);
  if (!draft.ok()) return fail(draft.error());
  options->service.scheduler.draft = std::move(*draft);
  Result<std::unique_ptr<core::LlmServer>> server =
      core::LlmServer::start(std::move(*entries), *options);
  if (!server.ok()) return fail(server.error());
  std::string line = "listening at";
  for (const std::string& host : hosts) {
    line += " ";
    line += shown_address(host, (*server)->port(), f.tls.enabled() ? "https://" : "http://");
  }
  write_line(line);
  flush_out();
  if (!f.quiet && !f.tls.enabled() && std::ranges::any_of(hosts, is_far_host))
    note("keys and texts can be read on their way; --tls-cert and --tls-key encrypt them");
  if (!f.quiet && models > 1)
    note(fmt::format("{} models, each loaded when it is asked for; stop with Ctrl-C", models));
  if (!f.quiet && models == 1) {
    const core::Scheduler& scheduler = (*server)->service().scheduler();
    note(fmt::format("{}: {} sessions of {} positions, {:.1f} MB; stop with Ctrl-C",
                     (*server)->service().name(), f.parallel, scheduler.context(),
                     static_cast<double>(scheduler.bytes()) / 1e6));
  }
  return wait_and_stop(**server, f);
}

// Speculative decoding, with the names of `loom run`.
void add_guess_options(const Command& verb, ServeFlags& f) {
  const Option draft = verb.option(
      "--draft", f.draft,
      "A smaller model with the same tokens, which guesses; same texts, faster where few are "
      "written at a time");
  verb.option("--guesses", f.guesses, "Tokens that it guesses at a time")
      .range(1, 64)
      .show_default()
      .needs(draft);
  verb.option(
          "--lookup", f.lookup,
          "Draft up to N tokens at a time: those that followed the last tokens earlier in the text")
      .range(0, 64);
}

// Options of caches and their limits.
void add_kept_options(const Command& verb, ServeFlags& f) {
  verb.flag(
      "--context-shift", f.context_shift,
      "A text whose context is full forgets a part of it and goes on, unless its request says "
      "otherwise");
  verb.option("--slot-save-path", f.slot_folder,
              "Folder in which POST /slots/ID?action=save and restore keep states of sequences");
  verb.option("--slot-save-max", f.slot_most, "Files that may be there")
      .range(1, 1 << 20)
      .show_default();
  verb.option("--resume", f.resume,
              "Seconds that a stream whose request says \"resumable\": true goes on without a "
              "reader, and can be read after its end (0: never)")
      .range(0, 86400)
      .show_default();
}

// Options of access control.
void add_access_options(const Command& verb, ServeFlags& f) {
  verb.option(
          "--host", f.host,
          "Number of the address, or unix:PATH for a Unix socket, or several with commas; those "
          "that others reach need a key")
      .show_default();
  verb.option("--port", f.port, "0: one that is free").range(0, 65535).show_default();
  verb.option("--api-key-file", f.key_file,
              "Keys, one on a line, one of which requests must carry; also LOOM_API_KEY");
  f.tls.add(verb);
  verb.option("--allow-host", f.allow_hosts, "A name by which this machine is called")
      .one_at_a_time();
  verb.option("--allow-origin", f.allow_origins,
              "Pages of the web that may ask; *: all, localhost: those of this machine")
      .one_at_a_time();
}

void add_model_options(const Command& verb, ServeFlags& f) {
  add_allow_nonfinite(verb, f.allow_nonfinite);
  verb.option("--dtype", f.dtype, "Number type of the weights (default: as stored)");
  verb.option("--models-folder", f.folder, "Serve the models in this folder as well");
  verb.option("--models-max", f.models_most,
              "Models in memory at a time; the least recently used one is unloaded (0: all)")
      .range(0, 1000)
      .show_default();
  verb.option("--models-memory", f.models_memory,
              "MB that several models may take together (0: no bound)")
      .range(0, int64_t{1} << 40)
      .show_default();
  verb.option("--sleep-idle-seconds", f.sleep,
              "Seconds after its last request at which a model served alone leaves memory, to be "
              "loaded again by the next (-1: it stays)")
      .range(-1, int64_t{1} << 40)
      .show_default();
  verb.option("--keep-alive", f.keep_alive,
              "Seconds that one of several models stays after its last request (-1: forever)")
      .range(-1, int64_t{1} << 30)
      .show_default();
  verb.option("--chat-template", f.template_text, "A chat template in the place of the model's");
  verb.flag("--no-thinking", f.no_thinking,
            "Templates that know the variable enable_thinking see it as false, unless a request "
            "says otherwise");
  verb.option("--template-arg", f.template_args,
              "NAME=VALUE that templates see as a variable, unless a request says otherwise")
      .one_at_a_time();
  verb.option("--chat-template-file", f.template_file, "The same, from a file");
  verb.option("--alias", f.alias,
              "Name of the (first) model for clients (default: of its file); after commas, others "
              "by which they may ask for it");
  verb.option("--tags", f.tags, "Words about the (first) model that /v1/models tells, with commas");
  verb.option("--defaults", f.defaults,
              "JSON with fields of /completion that requests have unless they say otherwise");
}

void add_request_options(const Command& verb, ServeFlags& f) {
  verb.flag(
      "--no-prefill-assistant", f.no_prefill,
      "A conversation that ends with a turn of the assistant gets a new one, unless a request "
      "says continue_final_message");
  verb.option("--parallel", f.parallel, "Texts written at the same time, each with a KV cache")
      .range(1, 256)
      .show_default();
  verb.option("--queue", f.queue, "Texts that may wait; more get status 429")
      .range(0, 100000)
      .show_default();
  verb.option("--cache-type", f.cache_type,
              "Number type of keys and values: float32, float16, bfloat16, q8_0 or q4_0")
      .show_default();
  verb.option("--context", f.context,
              "Positions of each session (default: the model's, at most 2048)")
      .range(0, int64_t{1} << 40);
  add_kept_options(verb, f);
  verb.option("--chunk", f.chunk, "Prompt tokens per pass; changes speed, never the text")
      .range(1, 1 << 20)
      .show_default();
  verb.option("--without", f.without, "Routes that are not served: page, slots or metrics")
      .one_at_a_time();
  verb.flag("--strict-fields", f.strict_fields, "Refuse fields of requests that are not known");
  verb.option("--grace", f.grace, "Seconds for texts under way after Ctrl-C")
      .range(0, 86400)
      .show_default();
  verb.flag("--openapi", f.openapi,
            "Write the OpenAPI 3.1 document of the routes, which is at /openapi.json, and end");
}

}  // namespace

Verb add_serve(Command app) {
  auto f = std::make_shared<ServeFlags>();
  const Command verb = app.command(
      "serve", "Serve models over HTTP with the APIs of OpenAI, Anthropic, Ollama and llama.cpp.");
  verb.examples(
      "  loom serve models/stories.entity\n"
      "  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \\\n"
      "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a story.\"}]}'\n"
      "  loom serve a.gguf b.gguf --models-max 1\n"
      "  loom serve --models-folder models --keep-alive 60");
  verb.option("MODEL", f->models,
              ".entity or .gguf files, folders with config.json, or names of models that were "
              "pulled; of several each is loaded when it is asked for")
      .names_model();
  f->memory.add(verb);
  add_model_options(verb.group("Models"), *f);
  add_request_options(verb.group("Requests"), *f);
  add_guess_options(verb.group("Drafts"), *f);
  add_access_options(verb.group("Network and access"), *f);
  const Command reports = verb.group("Reports");
  reports.option(
      "--log", f->log,
      "Add a line of JSON for each request to this file; no prompt and no text is in it");
  reports.flag("--verbose", f->verbose,
               "Chats of OpenAI's dialect tell the prompt that their template made (__verbose)");
  reports.flag("--quiet", f->quiet, "Only the line with the address");
  f->engine.add(verb);
  f->engine.add_device(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
