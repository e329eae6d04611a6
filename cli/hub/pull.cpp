// loom pull: a model from a hub into the cache.
#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "../shared/verbs.hpp"
#include "download.hpp"
#include "endpoint.hpp"

namespace loom::cli {
namespace {

struct PullFlags {
  std::string name;
  DownloadFlags download;
  bool json = false;
};

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
  if (f.download.quiet) return;
  const std::string how = report.loaded == 0 ? std::string("all of it was here")
                                             : fmt::format("{} loaded in {:.1f} s",
                                                           human_bytes(report.loaded), seconds);
  note(fmt::format("{}: {} files, {}, {}; `loom run {}` runs it", name.repo, report.files,
                   human_bytes(report.bytes), how, "hf:" + name.str()));
}

int run_pull(const PullFlags& f) {
  const Result<HubName> name = parse_hub_name(f.name, false, hub_endpoint());
  if (!name.ok()) return fail(name.error());
  const auto start = std::chrono::steady_clock::now();
  DownloadFlags flags = f.download;
  flags.quiet = flags.quiet || f.json;
  const Result<FetchReport> report = download_model(*name, flags);
  if (!report.ok()) return fail(report.error());
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
  verb.option("NAME", f->name,
              "hf:ORG/NAME[:FILE][@REVISION], or an address of the hub; FILE: also a quantisation, "
              "Q4_K_M")
      .required();
  verb.option("--endpoint", f->download.endpoint,
              "Address of the hub (default: $HF_ENDPOINT, or https://huggingface.co)");
  verb.option("--parallel", f->download.parallel, "Files that are loaded at a time")
      .range(1, 32)
      .show_default();
  verb.option("--retries", f->download.retries,
              "Attempts in a row that bring nothing, before it gives up")
      .range(0, 1000)
      .show_default();
  verb.option("--timeout", f->download.timeout, "Seconds without a byte that end an attempt")
      .range(1, 3600)
      .show_default();
  verb.flag("--json", f->json, "One JSON object instead of the path");
  verb.flag("--quiet", f->download.quiet, "No progress and no notes");
  return {verb, [f] { return run_pull(*f); }};
}

}  // namespace loom::cli
