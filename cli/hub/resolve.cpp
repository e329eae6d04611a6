#include "resolve.hpp"

#include <algorithm>
#include <filesystem>

#include "../shared/console.hpp"
#include "cache.hpp"

namespace loom::cli {
namespace {

bool looks_like_path(const std::string& text) {
  static constexpr std::string_view kEndings[] = {
      ".entity", ".gguf", ".json", ".onnx", ".npz", ".npy",   ".safetensors",
      ".csv",    ".txt",  ".bin",  ".lm",   ".xml", ".tflite"};
  const std::string_view name = std::string_view(text).substr(0, text.find(':'));
  if (name.empty() || name.front() == '/' || name.front() == '.' || name.back() == '/') return true;
  if (std::count(name.begin(), name.end(), '/') > 1) return true;
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return lower(name).ends_with(ending); });
}

}  // namespace

Result<std::string> resolve_model_path(const std::string& text) {
  std::error_code error;
  const bool hub = text.starts_with(kHubPrefix);
  if (!hub && (std::filesystem::exists(text, error) || looks_like_path(text))) return text;
  const Result<HubName> name = parse_hub_name(text, false);
  if (!name.ok()) {
    if (hub) return name.error();
    return text;
  }
  const Result<std::string> root = hub_cache_root();
  if (!root.ok()) {
    if (hub) return root.error();
    return text;
  }
  Result<FoundModel> found = find_model(HubCache(*root), text);
  if (found.ok()) return found->path;
  Error why = found.error();
  if (!hub && why.code == Code::not_found)
    why.message = "no such file or folder, and " + why.message;
  return why;
}

}  // namespace loom::cli
