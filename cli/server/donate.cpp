// loom donate: serves remote clients that push a model and run it; and the client side, which
// pushes and sends requests.
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "../hub/name.hpp"
#include "../shared/progress.hpp"
#include "../shared/tls_flags.hpp"
#include "../shared/verbs.hpp"
#include "remote/client.hpp"
#include "remote/server.hpp"

namespace loom::cli {
namespace {

struct DonateFlags {
  ModelFlags model;
  EngineFlags engine;
  TlsFlags tls;
  std::string tls_ca;
  bool use_tls = false, allow_plaintext = false;
  std::string host = "127.0.0.1", max_bytes = "2G", secret_file;
  int64_t port = core::kDonatePort, queue = 64, workers = 1, context = 0, timeout = 30, grace = 10;
  std::string to, push, prompt;
  std::vector<int64_t> infer;
  int64_t max_tokens = 0;
  bool status = false, quiet = false;
};

std::string donated_name(const std::string& path) {
  const std::string pulled = pulled_model_name(path);
  return pulled.empty() ? path.substr(path.find_last_of('/') + 1) : pulled;
}

// Secrets are never given on the command line, where every user of the machine can read them.
Result<std::string> read_secret(const DonateFlags& f) {
  if (f.secret_file.empty()) return std::string();
  LOOM_ASSIGN(std::string secret, read_text(f.secret_file));
  if (secret.size() < core::kDonateSecretLeast) {
    return Error{Code::invalid_argument,
                 fmt::format("a secret needs at least {} bytes; `openssl rand -hex 32` makes one",
                             core::kDonateSecretLeast),
                 f.secret_file, -1};
  }
  return secret;
}

// ---- the server ---------------------------------------------------------------------------------

// One engine per worker; they share the cores.
Result<std::vector<Engine>> engines_of(const DonateFlags& f) {
  EngineFlags flags = f.engine;
  std::vector<Engine> engines;
  for (int64_t i = 0; i < f.workers; ++i) {
    LOOM_ASSIGN(Engine engine, flags.create(f.model.memory));
    if (i == 0 && f.workers > 1 && flags.threads == 0) {
      const int64_t each = std::max<int64_t>(1, engine.info().cores / f.workers);
      flags.threads = static_cast<int>(each);
      LOOM_ASSIGN(engine, flags.create(f.model.memory));
    }
    engines.push_back(std::move(engine));
  }
  return engines;
}

Result<core::DonateOptions> server_options(const DonateFlags& f) {
  core::DonateOptions options;
  options.address = f.host;
  options.port = f.port;
  options.queue = f.queue;
  options.workers = f.workers;
  options.limits.time = std::chrono::seconds(f.timeout);
  options.allow_plaintext = f.allow_plaintext;
  LOOM_ASSIGN(options.limits.socket_mode, f.tls.socket_mode());
  LOOM_ASSIGN(options.tls, f.tls.server({f.host}));
  LOOM_ASSIGN(options.max_bytes, parse_size(f.max_bytes));
  LOOM_ASSIGN(options.secret, read_secret(f));
  LOOM_ASSIGN(std::vector<Engine> engines, engines_of(f));
  if (f.model.folder.empty()) {
    options.mount = core::donate_mount(std::move(engines), f.context);
    return options;
  }
  std::vector<Model> models;
  for (const Engine& engine : engines) {
    LOOM_ASSIGN(Model model, f.model.load(engine, f.quiet));
    models.push_back(std::move(model));
  }
  LOOM_ASSIGN(options.model, core::donate_model(std::move(models), f.context));
  options.name = donated_name(f.model.folder);
  return options;
}

int run_server(const DonateFlags& f) {
  Result<core::DonateOptions> options = server_options(f);
  if (!options.ok()) return fail(options.error());
  Result<std::unique_ptr<core::DonateServer>> server = core::DonateServer::start(*options);
  if (!server.ok()) return fail(server.error());
  write_line("listening at " + shown_address(f.host, (*server)->port(), ""));
  flush_out();
  if (!f.quiet) {
    note(fmt::format("{}; {} {}; stop with Ctrl-C",
                     options->model == nullptr ? "waits for a model" : options->name, f.workers,
                     f.workers == 1 ? "worker" : "workers"));
  }
  while (!interrupted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    f.tls.reload([&](core::TlsContext context) { (*server)->use_tls(std::move(context)); });
  }
  stop_without_haste();
  const core::DonateJobs& jobs = (*server)->jobs();
  if (!f.quiet && jobs.in_progress() > 0)
    note(fmt::format("{} jobs end first; a second signal ends them", jobs.in_progress()));
  if (!(*server)->stop(std::chrono::seconds(f.grace)) && !f.quiet)
    note(fmt::format("jobs that were not done after {} s were ended", f.grace));
  return kDone;
}

// ---- the client ---------------------------------------------------------------------------------

Status push_file(core::DonateClient& client, const DonateFlags& f, const std::string& file) {
  core::JsonValue config = core::JsonValue::object();
  config.add("name", core::JsonValue::string(donated_name(f.push)));
  config.add("from", core::JsonValue::string(fmt::format("loom {}", kVersion)));
  {
    Progress bar("pushing", "bytes", f.quiet);
    LOOM_TRY(client.push(file, core::dump_json(config), [&](int64_t done, int64_t total) {
      bar.update(done, total);
      return !interrupted();
    }));
  }
  if (!f.quiet) note(fmt::format("{} is mounted at {}", donated_name(f.push), f.to));
  return {};
}

Result<std::vector<int32_t>> ids_of(const DonateFlags& f) {
  std::vector<int32_t> ids;
  for (const int64_t id : f.infer) {
    if (id < 0 || id > INT32_MAX)
      return Error{Code::invalid_argument, "no token id", fmt::format("--infer {}", id), -1};
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

Status report_queue(core::DonateClient& client) {
  LOOM_ASSIGN(const core::DonateQueue queue, client.queue());
  core::JsonValue out = core::JsonValue::object();
  out.add("mode", core::JsonValue::string(client.mode()));
  out.add("depth", core::JsonValue::integer(queue.depth));
  out.add("capacity", core::JsonValue::integer(queue.capacity));
  out.add("in_progress", core::JsonValue::integer(queue.in_progress));
  write_line(core::dump_json(out));
  return {};
}

// In this order: push, ids, text, queue. Local mistakes are reported before any request.
Status ask_there(const DonateFlags& f) {
  constexpr uint64_t kMaxOfModel = uint64_t{1} << 40;
  core::DonateClientOptions options;
  options.to = f.to;
  options.seconds = static_cast<double>(f.timeout);
  options.go_on = [] { return !interrupted(); };
  options.allow_plaintext = f.allow_plaintext;
  if (f.use_tls || !f.tls_ca.empty() || f.tls.enabled()) {
    LOOM_ASSIGN(options.tls, core::tls_client({f.tls.cert, f.tls.key, f.tls_ca}));
  }
  LOOM_ASSIGN(options.secret, read_secret(f));
  LOOM_ASSIGN(const std::vector<int32_t> ids, ids_of(f));
  std::string file;
  if (!f.push.empty()) {
    LOOM_ASSIGN(file, read_file(f.push, kMaxOfModel));
    if (file.empty()) return Error{Code::bad_file, "the file is empty", f.push, -1};
  }
  LOOM_ASSIGN(const std::unique_ptr<core::DonateClient> client,
              core::DonateClient::connect(options));
  if (!f.push.empty()) LOOM_TRY(push_file(*client, f, file));
  if (!ids.empty()) {
    LOOM_ASSIGN(const std::vector<int32_t> out, client->infer(ids, f.max_tokens));
    write_line(fmt::format("{}", fmt::join(out, " ")));
  }
  if (!f.prompt.empty()) {
    LOOM_ASSIGN(const std::string text, client->prompt(f.prompt, f.max_tokens));
    write_out(text + "\n");
  }
  return f.status ? report_queue(*client) : Status();
}

int run_client(const DonateFlags& f) {
  if (!f.model.folder.empty())
    return fail(kUsage, "MODEL is what is lent here; beside --to, --push FILE sends one");
  if (!f.tls.client_ca.empty())
    return fail(kUsage,
                "--tls-client-ca is of the machine that is lent; --tls-ca says whom --to trusts");
  if (f.push.empty() && f.prompt.empty() && f.infer.empty() && !f.status)
    return fail(kUsage, "--to needs --push FILE, --prompt TEXT, --infer IDS or --status");
  const Status done = ask_there(f);
  if (done.ok()) return kDone;
  return interrupted() ? fail_interrupted() : fail(done.error());
}

void add_server_options(Command verb, const std::shared_ptr<DonateFlags>& f) {
  verb.option("--host", f->host,
              "Number of the address to listen at, or unix:PATH for a Unix socket; one that others "
              "reach needs --secret-file and --tls-cert")
      .show_default();
  verb.option("--port", f->port, "0: one that is free").range(0, 65535).show_default();
  verb.option("--queue", f->queue,
              "Jobs of all clients that may wait; more get the error: queue full")
      .range(1, 100000)
      .show_default();
  verb.option("--workers", f->workers, "Jobs computed at the same time, each with its own engine")
      .range(1, 64)
      .show_default();
  verb.option("--max-bytes", f->max_bytes, "Models on their way, all together, as 512M or 2G")
      .show_default();
  verb.option("--context", f->context,
              "Positions of each worker (default: the model's, at most 2048)")
      .range(0, int64_t{1} << 40);
  verb.option("--grace", f->grace, "Seconds for jobs under way after Ctrl-C")
      .range(0, 86400)
      .show_default();
}

void add_client_options(Command verb, const std::shared_ptr<DonateFlags>& f) {
  const Option to =
      verb.option("--to", f->to, "HOST[:PORT] or unix:PATH of a machine that is lent: ask it");
  verb.option("--push", f->push, "Send it this .entity or .gguf file, to compute with")
      .names_model()
      .needs(to);
  verb.option("--prompt", f->prompt, "Let it go on from this text").needs(to);
  const ListOption infer =
      verb.option("--infer", f->infer, "Let it go on from these token ids, as 1,15,27");
  infer.split_at(',').needs(to);
  verb.option("--max-tokens", f->max_tokens,
              "Tokens to write (default: 64 after a text, 8 after ids)")
      .range(0, 1 << 20)
      .needs(to);
  verb.flag("--tls", f->use_tls,
            "Encrypted; its certificate has to be of an authority that the system trusts")
      .needs(to);
  verb.option("--tls-ca", f->tls_ca, "Encrypted; PEM file of the authorities that are trusted")
      .needs(to);
  verb.flag("--status", f->status, "How many jobs wait and are under way there, as JSON").needs(to);
}

}  // namespace

Verb add_donate(Command app) {
  auto f = std::make_shared<DonateFlags>();
  const Command verb =
      app.command("donate", "Run models for other machines, or push a model to another machine.");
  verb.examples(
      "  loom donate                                   # lend: waits for a model\n"
      "  loom donate --to 127.0.0.1 --push models/stories.entity --prompt 'Once upon a time'\n"
      "  loom donate models/stories.entity --workers 2 # lend a model that is here\n"
      "  loom donate --to 127.0.0.1:17001 --status\n"
      "  loom donate --host 0.0.0.0 --secret-file key  # others need the same file");
  f->model.add(verb, false);
  add_server_options(verb, f);
  add_client_options(verb, f);
  verb.option("--secret-file", f->secret_file,
              "A secret of at least 16 bytes that both sides know; it is not sent");
  f->tls.add(verb);
  verb.flag("--allow-plaintext", f->allow_plaintext,
            "Other machines without TLS, for networks that encrypt by themselves");
  verb.option("--timeout", f->timeout,
              "Seconds for a frame, and for silence while no answer is awaited")
      .range(1, 86400)
      .show_default();
  f->engine.add(verb);
  verb.flag("--quiet", f->quiet, "No notes and no progress");
  return {verb, [f] { return f->to.empty() ? run_server(*f) : run_client(*f); }};
}

}  // namespace loom::cli
