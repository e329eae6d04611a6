#include "api/engine/gpu_cache.hpp"

#include <algorithm>

#include "io/files/file.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kMaxBytes = 1 << 20;
constexpr size_t kMaxAdapters = 16, kMaxChoices = 1024;

// The identity of an adapter: everything that kernels and compilers depend on.
JsonValue key_of(const webgpu::AdapterReport& adapter) {
  JsonValue key;
  key.add("name", JsonValue::string(adapter.name));
  key.add("vendor", JsonValue::string(adapter.vendor));
  key.add("architecture", JsonValue::string(adapter.architecture));
  key.add("driver", JsonValue::string(adapter.driver));
  key.add("backend", JsonValue::string(adapter.backend));
  key.add("library", JsonValue::string(adapter.flavour));
  return key;
}

bool is_of(const JsonValue& entry, const JsonValue& key) {
  return std::all_of(key.members().begin(), key.members().end(), [&](const auto& member) {
    const JsonValue* value = entry.find(member.first);
    return value != nullptr && value->is_string() && value->text() == member.second.text();
  });
}

// The adapters of a file.
Result<std::vector<JsonValue>> read_adapters(const std::string& path) {
  LOOM_ASSIGN(const std::string text, read_file(path, kMaxBytes));
  LOOM_ASSIGN(const JsonValue root, parse_json(text, path, {kMaxBytes, 8}));
  const JsonValue* version = root.find("version");
  if (version == nullptr || !version->is_int()) {
    return bad_file("it is not a file of variants", path);
  }
  LOOM_ASSIGN(const int64_t number, version->as_int("version"));
  if (number != webgpu::variants_version()) return bad_file("it is of another version", path);
  const JsonValue* adapters = root.find("adapters");
  if (adapters == nullptr || !adapters->is_array()) {
    return bad_file("it is not a file of variants", path);
  }
  return adapters->elements();
}

std::vector<webgpu::Choice> choices_of(const JsonValue& entry) {
  std::vector<webgpu::Choice> list;
  const JsonValue* choices = entry.find("choices");
  if (choices == nullptr) return list;
  for (const auto& [product, variant] : choices->members()) {
    if (variant.is_string() && list.size() < kMaxChoices) {
      list.push_back({product, variant.text()});
    }
  }
  return list;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? std::string() : path.substr(0, slash);
}

// Replaces entries for the same products by the new ones.
JsonValue entry_of(JsonValue key, std::vector<webgpu::Choice> old,
                   const std::vector<webgpu::Choice>& fresh) {
  for (const webgpu::Choice& choice : fresh) {
    std::erase_if(old, [&](const webgpu::Choice& o) { return o.product == choice.product; });
  }
  old.insert(old.end(), fresh.begin(), fresh.end());
  JsonValue choices = JsonValue::object();
  for (const webgpu::Choice& choice : old) {
    choices.add(choice.product, JsonValue::string(choice.variant));
  }
  key.add("choices", std::move(choices));
  return key;
}

}  // namespace

GpuChoices read_gpu_choices(const std::string& path, const webgpu::AdapterReport& adapter) {
  const Result<std::vector<JsonValue>> adapters = read_adapters(path);
  if (!adapters.ok()) {
    return {{}, adapters.error().code == Code::not_found ? "" : adapters.error().message};
  }
  const JsonValue key = key_of(adapter);
  for (const JsonValue& entry : *adapters) {
    if (is_of(entry, key)) return {choices_of(entry), {}};
  }
  return {};
}

Status write_gpu_choices(const std::string& path, const webgpu::AdapterReport& adapter,
                         const std::vector<webgpu::Choice>& choices) {
  const std::string folder = folder_of(path);
  if (!folder.empty() && !is_directory(folder)) {
    if (const std::string outer = folder_of(folder); !outer.empty()) LOOM_TRY(make_folder(outer));
    LOOM_TRY(make_folder(folder));
  }
  const JsonValue key = key_of(adapter);
  JsonValue adapters = JsonValue::array();
  std::vector<webgpu::Choice> old;
  if (const Result<std::vector<JsonValue>> known = read_adapters(path); known.ok()) {
    for (const JsonValue& entry : *known) {
      if (is_of(entry, key)) {
        old = choices_of(entry);
      } else if (entry.is_object() && adapters.elements().size() + 1 < kMaxAdapters) {
        adapters.push(entry);
      }
    }
  }
  adapters.push(entry_of(key, std::move(old), choices));
  JsonValue root;
  root.add("version", JsonValue::integer(webgpu::variants_version()));
  root.add("adapters", std::move(adapters));
  const std::string text = dump_json(root, 2) + "\n";
  return write_file_atomic(path, std::as_bytes(std::span(text)));
}

std::string keep_gpu_choices(webgpu::Backend& gpu, const std::string& path) {
  const GpuChoices kept = read_gpu_choices(path, gpu.adapter());
  gpu.choose(kept.choices);
  gpu.on_choice(
      [&gpu, path] { static_cast<void>(write_gpu_choices(path, gpu.adapter(), gpu.choices())); });
  return kept.note;
}

}  // namespace loom::core
