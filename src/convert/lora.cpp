#include "convert/lora.hpp"

#include <charconv>
#include <cmath>

#include "base/text.hpp"
#ifndef LOOM_WITHOUT_HF
#include "formats/hf/adapter.hpp"
#endif

namespace loom::core {

#ifdef LOOM_WITHOUT_HF

Status add_lora(LanguageModel&, const std::vector<std::string>& paths, ThreadPool&) {
  return paths.empty() ? Status{} : unsupported("this build reads no adapters");
}

#else

namespace {

struct LoraPath {
  std::string folder;
  double weight = 1;
};

// "PATH" or "PATH=WEIGHT".
Result<LoraPath> lora_path(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return LoraPath{text};
  double weight = 0;
  const char* end = text.data() + text.size();
  const auto [last, code] = std::from_chars(text.data() + equals + 1, end, weight);
  if (code != std::errc() || last != end) return LoraPath{text};
  if (!std::isfinite(weight))
    return invalid(cat("the weight of the adapter ", printable(text), " must be a finite number"));
  return LoraPath{text.substr(0, equals), weight};
}

}  // namespace

Status add_lora(LanguageModel& model, const std::vector<std::string>& paths, ThreadPool& pool) {
  if (paths.empty()) return {};
  if (model.encoder() != nullptr) return unsupported("adapters are for decoders", model.source());
  std::vector<ModelAdapter> adapters;
  for (const std::string& text : paths) {
    LOOM_ASSIGN(const LoraPath path, lora_path(text));
    LOOM_ASSIGN(ModelAdapter adapter, read_peft_adapter(path.folder, model.config(), path.weight));
    adapter.name = cat("lora", adapters.size() + 1);
    adapters.push_back(std::move(adapter));
  }
  return model.add_adapters(adapters, pool);
}

#endif

}  // namespace loom::core
