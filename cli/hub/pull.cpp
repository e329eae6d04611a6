// loom pull: a model from a hub into the cache.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "endpoint.hpp"
#include "fetch.hpp"

namespace loom::cli {
namespace {

constexpr const char* kHubAddress = "https://huggingface.co";

struct PullFlags {
  std::string name, endpoint;
  int64_t parallel = 4, retries = 5, timeout = 30;
  bool json = false, quiet = false;
};

Result<FetchOptions> fetch_options(const PullFlags& f) {
  FetchOptions options;
  const char* setting = std::getenv("HF_ENDPOINT");
  std::string endpoint = f.endpoint;
  if (endpoint.empty() && setting != nullptr) endpoint = setting;
  if (endpoint.empty()) endpoint = kHubAddress;
  LOOM_ASSIGN(options.endpoint, checked_endpoint(endpoint));
  options.token = hub_token();
  if (!options.token.empty() && !may_carry_token(options.endpoint)) {
    note("the token stays here: " + options.endpoint + " is not reached over https");
    options.token.clear();
  }
  options.parallel = f.parallel;
  options.retries = f.retries;
  options.stall = f.timeout;
  return options;
}

void print_report(const PullFlags& f, const HubName& name, const FetchReport& report,
                  double seconds) {
  if (f.json) {
    JsonObject()
        .set("repo", name.repo)
        .set("commit", report.commit)
        .set("path", report.path)
        .set("files", report.files)
        .set("bytes", report.bytes)
        .set("loaded_bytes", report.loaded)
        .set("seconds", seconds)
        .print();
    return;
  }
  write_line(report.path);
  if (f.quiet) return;
  const std::string how = report.loaded == 0 ? std::string("all of it was here")
                                             : fmt::format("{} loaded in {:.1f} s",
                                                           human_bytes(report.loaded), seconds);
  note(fmt::format("{}: {} files, {}, {}; `loom run {}` runs it", name.repo, report.files,
                   human_bytes(report.bytes), how, "hf:" + name.str()));
}

int run_pull(const PullFlags& f) {
  const std::string text =
      f.name.starts_with(kHubPrefix) ? f.name : std::string(kHubPrefix) + f.name;
  const Result<HubName> name = parse_hub_name(text);
  if (!name.ok()) return fail(name.error());
  if (!can_fetch()) return fail(fetch_model(HubCache({}), *name, {}).error());
  const Result<std::string> root = hub_cache_root();
  if (!root.ok()) return fail(root.error());
  Result<FetchOptions> options = fetch_options(f);
  if (!options.ok()) return fail(options.error());
  Progress bar(name->repo, "MB", f.quiet || f.json);
  std::mutex output_mutex;
  options->progress = [&](int64_t done, int64_t total, int64_t loaded) {
    const std::scoped_lock lock(output_mutex);
    constexpr int64_t kMega = 1'000'000;
    bar.update(done / kMega, total / kMega, loaded / kMega);
  };
  options->note = [&](const std::string& text_of_note) {
    if (f.quiet) return;
    const std::scoped_lock lock(output_mutex);
    bar.finish();
    note(text_of_note);
  };
  const auto start = std::chrono::steady_clock::now();
  const Result<FetchReport> report = fetch_model(HubCache(*root), *name, *options);
  bar.finish();
  if (!report.ok()) {
    if (report.error().code == Code::cancelled && interrupted() && !f.quiet)
      note("what was loaded stays; the same command goes on from there");
    return fail(report.error());
  }
  print_report(f, *name, *report,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return kDone;
}

}  // namespace

Verb add_pull(Command app) {
  auto f = std::make_shared<PullFlags>();
  const Command verb = app.command("pull", "Download a model from a hub.");
  verb.examples(
      "  loom pull hf:HuggingFaceTB/SmolLM2-135M-Instruct\n"
      "  loom pull hf:bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M\n"
      "  loom run SmolLM2-135M-Instruct\n"
      "Models are stored where huggingface_hub stores them: $HF_HUB_CACHE, or hub in $HF_HOME, or\n"
      "~/.cache/huggingface/hub. A token of the hub is read from HF_TOKEN or the file token "
      "beside.");
  verb.option("NAME", f->name, "hf:ORG/NAME[:FILE][@REVISION]; FILE: also a quantisation, Q4_K_M")
      .required();
  verb.option("--endpoint", f->endpoint,
              "Address of the hub (default: $HF_ENDPOINT, or https://huggingface.co)");
  verb.option("--parallel", f->parallel, "Files that are loaded at a time")
      .range(1, 32)
      .show_default();
  verb.option("--retries", f->retries, "Attempts in a row that bring nothing, before it gives up")
      .range(0, 1000)
      .show_default();
  verb.option("--timeout", f->timeout, "Seconds without a byte that end an attempt")
      .range(1, 3600)
      .show_default();
  verb.flag("--json", f->json, "One JSON object instead of the path");
  verb.flag("--quiet", f->quiet, "No progress and no notes");
  return {verb, [f] { return run_pull(*f); }};
}

}  // namespace loom::cli
