// loom serve: serves a model to clients of OpenAI, Anthropic, Ollama or llama.cpp.
#include "serve/log_file.hpp"
#include "serve/serve_options.hpp"
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
#include "../hub/resolve.hpp"
#include "../shared/progress.hpp"
#include "../shared/tls_flags.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"
#include "served_modelfile.hpp"

namespace loom::cli {
namespace {

namespace fs = std::filesystem;

struct ServeFlags {
  EngineFlags engine;
  MemoryFlags memory;
  TlsFlags tls;
  std::vector<std::string> models;
  bool openapi = false, quiet = false;
  OptionFlags line;      // of api/options/serve.toml
  ServeOptions options;  // those of the line
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
  if (f.options.api_key_file.empty()) return keys;
  LOOM_ASSIGN(const std::string text, read_text(f.options.api_key_file));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) keys.push_back(std::move(line));
    at = end + 1;
  }
  if (keys.empty())
    return Error{Code::invalid_argument, "no key is in it; put one on each line",
                 f.options.api_key_file, -1};
  return keys;
}

// NAME=VALUE as a JSON object; JSON values are used as such, others are texts.
Result<std::string> served_variables(const ServeFlags& f) {
  core::JsonValue out = core::JsonValue::object();
  if (!f.options.thinking) out.add("enable_thinking", core::JsonValue::boolean(false));
  for (const std::string& argument : f.options.template_arg) {
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

// Without empty and repeated words.
std::vector<std::string> distinct(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words)
    if (!word.empty() && std::ranges::find(out, word) == out.end()) out.push_back(word);
  return out;
}

// Where it listens. "localhost" is its number.
std::vector<std::string> addresses_of(const ServeFlags& f) {
  std::vector<std::string> hosts = distinct(split_list(f.options.host));
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
  options.port = f.options.port;
  LOOM_ASSIGN(options.http.socket_mode, f.tls.socket_mode());
  LOOM_ASSIGN(options.keys, read_keys(f));
  options.hosts = f.options.allow_host;
  options.origins = f.options.allow_origin;
  options.without = f.options.without;
  options.site = f.options.site;
  options.service.defaults = f.options.defaults;
  options.models_most = f.options.models_max;
  options.models_memory = f.options.models_memory * 1000000;
  if (!f.options.keep_alive.empty()) {
    const core::JsonValue time = core::JsonValue::string(f.options.keep_alive);
    LOOM_ASSIGN(options.keep_seconds, core::read_keep_alive(time, "--keep-alive"));
  }
  options.service.on_gpu = engine.info().device != "cpu";
  LOOM_ASSIGN(options.service.variables, served_variables(f));
  options.service.version = engine.info().version;
  options.http.memory = engine;
  options.service.strict = f.options.strict_fields;
  options.service.prefill = f.options.prefill_assistant;
  options.service.verbose = f.options.verbose;
  options.service.resume.seconds = f.options.resume;
  options.service.context_shift = f.options.context_shift;
  std::error_code bad;
  if (!f.options.slot_save_path.empty() && !fs::is_directory(f.options.slot_save_path, bad))
    return Error{Code::not_found, "there is no such folder for --slot-save-path",
                 f.options.slot_save_path, -1};
  options.service.slots = {f.options.slot_save_path, f.options.slot_save_max};
  options.service.scheduler.sessions = f.options.parallel;
  options.service.scheduler.waiting = f.options.queue;
  options.service.scheduler.session.context = f.options.context;
  options.service.scheduler.lookup = f.options.lookup > 0;
  options.service.scheduler.guesses =
      std::max(f.options.draft.empty() ? 0 : f.options.guesses, f.options.lookup);
  LOOM_ASSIGN(options.service.scheduler.session.cache_type, parse_dtype(f.options.cache_type));
  options.service.scheduler.session.chunk = f.options.chunk;
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

// Models below a folder, by name: files, Modelfiles, and folders with config.json.
Result<std::vector<std::string>> models_below(const std::string& folder) {
  std::error_code bad;
  std::vector<std::string> out;
  for (const auto& one : fs::directory_iterator(folder, bad)) {
    const std::string end = one.path().extension().string();
    const bool file = one.is_regular_file(bad) &&
                      (end == ".gguf" || end == ".entity" || is_modelfile(one.path().string()));
    if (file || fs::exists(one.path() / "config.json", bad)) out.push_back(one.path().string());
  }
  if (bad) return Error{Code::not_found, "the folder cannot be read", folder, -1};
  std::ranges::sort(out);
  return out;
}

Result<std::string> template_of(const ServeFlags& f) {
  if (f.options.chat_template_file.empty()) return f.options.chat_template;
  return read_filled(f.options.chat_template_file);
}

// A loaded model must be able to generate text, unless it is an encoder.
Result<Model> load_served(const ServeFlags& f, const Engine& engine, const std::string& path,
                          const std::string& chat_template) {
  Progress bar("loading", "tensors", f.quiet);
  ModelOptions loading;
  if (!f.options.dtype.empty()) {
    LOOM_ASSIGN(loading.dtype, parse_dtype(f.options.dtype));
  }
  loading.chat_template = chat_template;
  loading.allow_nonfinite = f.options.allow_nonfinite;
  loading.rope_scaling = f.options.rope_scaling;
  loading.lora = f.options.lora;
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
  if (f.options.draft.empty()) return std::optional<Model>();
  LOOM_ASSIGN(Model draft, Model::load(engine, f.options.draft));
  return std::optional<Model>(std::move(draft));
}

Result<std::vector<core::ModelEntry>> entries_of(const ServeFlags& f, const Engine& engine) {
  std::vector<std::string> paths = f.models;
  const std::string& folder = f.options.models_folder;
  if (!folder.empty()) {
    LOOM_ASSIGN(const std::vector<std::string> more, models_below(folder));
    paths.insert(paths.end(), more.begin(), more.end());
  }
  if (paths.empty() && f.options.site.empty()) {
    return Error{Code::invalid_argument, "no model to serve; name one, or a folder that has some",
                 folder, -1};
  }
  if (paths.size() > 1 && !f.options.lora.empty())
    return Error{Code::invalid_argument, "--lora is for one model, and several are served", {}, -1};
  LOOM_ASSIGN(const std::string chat_template, template_of(f));
  std::vector<core::ModelEntry> out;
  for (std::string path : paths) {
    core::ModelEntry entry;
    entry.name = last_part(path);
    std::string own_template = chat_template;
    if (is_modelfile(path)) {
      LOOM_ASSIGN(const Modelfile file, read_modelfile(path));
      entry.name = file.name();
      LOOM_ASSIGN(entry.settings, settings_of(file, f.options.defaults));
      if (f.options.context > 0) entry.settings.context = 0;
      if (f.options.chunk != ServeOptions().chunk) entry.settings.chunk = 0;
      if (own_template.empty()) own_template = file.chat_template;
      LOOM_ASSIGN(path, resolve_model_path(file.from, f.quiet));
    }
    if (out.empty()) {
      entry.tags = distinct(f.options.tags);
      entry.aliases = distinct(f.options.alias);
      if (!entry.aliases.empty()) {
        entry.name = entry.aliases.front();
        entry.aliases.erase(entry.aliases.begin());
      }
    }
    entry.bytes = size_of(path);
    entry.load = [&f, &engine, path, own_template] {
      return load_served(f, engine, path, own_template);
    };
    if (entry.bytes == 0)
      return Error{Code::not_found,
                   "no such file or folder; give a model, or the name of one in loom list", path,
                   -1};
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
  const bool whole = server.drain(f.options.grace * 1000);
  if (!whole && !f.quiet) note(fmt::format("not all texts were whole after {} s", f.options.grace));
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
  Result<core::LogLine> log = open_log(f.options.log);
  if (!log.ok()) return fail(log.error());
  options->log = std::move(*log);
  Result<std::vector<core::ModelEntry>> entries = entries_of(f, *engine);
  if (!entries.ok()) return fail(entries.error());
  const size_t models = entries->size();
  if (models == 1 && f.options.keep_alive.empty()) options->keep_seconds = -1;
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
  if (!f.quiet && models == 0) note("the files of " + f.options.site + "; stop with Ctrl-C");
  if (!f.quiet && models > 1)
    note(fmt::format("{} models, each loaded when it is asked for; stop with Ctrl-C", models));
  if (!f.quiet && models == 1) {
    const core::Scheduler& scheduler = (*server)->service().scheduler();
    note(fmt::format("{}: {} sessions of {} positions, {:.1f} MB; stop with Ctrl-C",
                     (*server)->service().name(), f.options.parallel, scheduler.context(),
                     static_cast<double>(scheduler.bytes()) / 1e6));
  }
  return wait_and_stop(**server, f);
}

Status read_line(ServeFlags& f) {
  LOOM_TRY(f.line.read(f.options));
  if (f.options.draft.empty() && !f.line.text("guesses").empty())
    return Error{Code::invalid_argument, "--guesses needs --draft", {}, -1};
  return {};
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
      "  loom serve --models-folder models --keep-alive 5m");
  verb.option("MODEL", f->models,
              ".entity or .gguf files, folders with config.json, Modelfiles, or names of models, "
              "as hf:ORG/NAME; of several each is loaded when it is asked for")
      .names_model(true);
  f->memory.add(verb);
  f->line.add(verb, list_options(ServeOptions()), {"draft"});
  verb.group("Drafts")
      .option(
          "--draft", f->options.draft,
          "A smaller model with the same tokens, which drafts tokens; same texts, faster if few "
          "are generated at a time")
      .names_model();
  f->tls.add(verb.group("Network and access"));
  const Command reports = verb.group("Reports");
  reports.flag("--openapi", f->openapi,
               "Write the OpenAPI 3.1 document of the routes, which is at /openapi.json, and end");
  reports.flag("--quiet", f->quiet, "Only the line with the address");
  f->engine.add(verb);
  f->engine.add_device(verb);
  return {verb, [f] {
            const Status read = read_line(*f);
            return read.ok() ? run(*f) : fail(read.error());
          }};
}

}  // namespace loom::cli
