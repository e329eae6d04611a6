#include "evolve/dna/tensor_groups.hpp"

#include <algorithm>
#include <map>

#include "base/left_out.hpp"
#include "convert/model_report.hpp"
#include "formats/universal/tensor_layers.hpp"

namespace loom::core {

#ifdef LOOM_WITHOUT_ARRAYS
Result<std::vector<TensorGroup>> group_by_names(const TensorFile& /*file*/) {
  return left_out_of_build("reader for names of tensors", LOOM_BUILD_WITH("LOOM_ARRAYS=ON"));
}
#else

Result<std::vector<TensorGroup>> group_by_names(const TensorFile& file) {
  const auto entries = file.entries();
  LOOM_ASSIGN(const std::vector<TensorLayer> layers, tensor_layers(file));
  std::vector<bool> taken(entries.size(), false);
  std::vector<TensorGroup> groups;
  const auto add = [&](TensorGroup& group, std::string role, size_t index) {
    // The two biases of a recurrent layer are pieces of one parameter, each named once.
    if (taken[index]) return;
    taken[index] = true;
    group.tensors.push_back({entries[index].name, std::move(role), entries[index].shape});
    group.weights += entries[index].count();
  };
  for (const TensorLayer& layer : layers) {
    TensorGroup group;
    group.prefix = layer.name;
    group.type = layer.config.def->name;
    group.settings = settings_of(layer.config);
    for (const auto& [role, index] : layer.tensors) add(group, role, index);
    groups.push_back(std::move(group));
  }
  std::map<std::string, TensorGroup> others;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (taken[i] || entries[i].dtype == "text") continue;
    const std::string& name = entries[i].name;
    const size_t end = name.find_last_of("./");
    TensorGroup& group = others[end == std::string::npos ? name : name.substr(0, end)];
    add(group, end == std::string::npos ? name : name.substr(end + 1), i);
  }
  for (auto& [prefix, group] : others) {
    group.prefix = prefix;
    groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(groups, [](const TensorGroup& a, const TensorGroup& b) {
    return natural_less(a.prefix, b.prefix);
  });
  return groups;
}
#endif

}  // namespace loom::core
