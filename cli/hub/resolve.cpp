#include "resolve.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "../shared/console.hpp"
#include "download.hpp"
#include "endpoint.hpp"

namespace loom::cli {
namespace {

bool looks_like_path(const std::string& text) {
  static constexpr std::string_view kEndings[] = {
      ".entity", ".gguf", ".json", ".onnx", ".npz", ".npy", ".safetensors", ".csv",
      ".txt",    ".bin",  ".pt",   ".pth",  ".lm",  ".xml", ".tflite",      ".modelfile"};
  const std::string_view name = std::string_view(text).substr(0, text.find(':'));
  if (name.empty() || name.front() == '/' || name.front() == '.' || name.back() == '/') return true;
  if (std::count(name.begin(), name.end(), '/') > 1) return true;
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return lower(name).ends_with(ending); });
}

// Whether a model in the cache is the one that a name of the hub means. Without a revision it means
// main; another one is used only if nothing can be downloaded.
bool is_meant(const HubName& name, const PulledModel& model) {
  const bool main = std::find(model.refs.begin(), model.refs.end(), "main") != model.refs.end();
  return !name.revision.empty() || main || is_offline() || !can_fetch();
}

// The model in the cache, else from the hub.
Result<std::string> path_of_hub_name(const HubName& name, bool quiet) {
  const std::string text = std::string(kHubPrefix) + name.str();
  LOOM_ASSIGN(const std::string root, hub_cache_root());
  const Result<FoundModel> found = find_model(HubCache(root), text);
  if (found.ok() && is_meant(name, found->model)) {
    if (!found->note.empty() && !quiet) note(found->note);
    return found->path;
  }
  if (!found.ok() && found.error().code != Code::not_found) return found.error();
  if (is_offline()) {
    Error why = found.error();
    why.message += "; HF_HUB_OFFLINE is set, so nothing is downloaded";
    return why;
  }
  DownloadFlags flags;
  flags.quiet = quiet;
  LOOM_ASSIGN(const FetchReport report, download_model(name, flags));
  if (!quiet)
    note(fmt::format("{}: {} downloaded to {}", name.repo, human_bytes(report.bytes), root));
  return report.path;
}

}  // namespace

Result<std::string> resolve_model_path(const std::string& text, bool quiet) {
  std::error_code error;
  const std::string small = lower(text);
  if (text == "-") {
    return Error{Code::invalid_argument, "a model is a file or a name, not standard input", text,
                 -1};
  }
  if ((small.ends_with(".csv") || small.ends_with(".tsv")) && std::filesystem::exists(text, error))
    return Error{Code::bad_file, "is a table, not a model; loom train reads it", text, -1};
  const bool hub = is_hub_name(text);
  const bool exists = !text.starts_with(kHubPrefix) && std::filesystem::exists(text, error);
  if (exists || (!hub && looks_like_path(text))) return text;
  const Result<HubName> name = parse_hub_name(text, false, hub_endpoint());
  if (hub) return name.ok() ? path_of_hub_name(*name, quiet) : name.error();
  const Result<std::string> root = hub_cache_root();
  if (!name.ok() || !root.ok()) return text;
  const Result<FoundModel> found = find_model(HubCache(*root), text);
  if (found.ok() && !found->note.empty() && !quiet) note(found->note);
  if (found.ok()) return found->path;
  Error why = found.error();
  if (why.code == Code::not_found) why.message = "no such file or folder, and " + why.message;
  return why;
}

}  // namespace loom::cli
