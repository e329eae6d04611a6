// See family.hpp.
#include "families/family.hpp"

namespace loom::core {
namespace {

template <class Matches>
const DecoderFamily* find_family(Matches matches) {
  for (const DecoderFamily* family : decoder_families())
    if (matches(*family)) return family;
  return nullptr;
}

}  // namespace

const DecoderFamily* find_family_of_class(std::string_view hf_class) {
  return find_family([&](const DecoderFamily& row) { return row.hf_class == hf_class; });
}

const DecoderFamily* find_family_of_type(std::string_view model_type) {
  return find_family([&](const DecoderFamily& row) { return row.model_type == model_type; });
}

const DecoderFamily* find_family_of_gguf(std::string_view name, bool experts) {
  if (name.empty()) return nullptr;
  return find_family([&](const DecoderFamily& row) {
    return row.gguf.name == name &&
           (experts ? row.experts != nullptr : row.experts == nullptr && !row.gguf.shared_name);
  });
}

std::vector<const DecoderFamily*> network_families() {
  std::vector<const DecoderFamily*> ranked;
  for (const DecoderFamily* family : decoder_families()) {
    if (family->network_rank == 0) continue;
    auto at = ranked.end();
    while (at != ranked.begin() && at[-1]->network_rank > family->network_rank) --at;
    ranked.insert(at, family);
  }
  return ranked;
}

}  // namespace loom::core
