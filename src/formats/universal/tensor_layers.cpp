#include "formats/universal/tensor_layers.hpp"

#include "formats/universal/parts.hpp"

namespace loom::core {

Result<std::vector<TensorLayer>> tensor_layers(const TensorFile& file) {
  const InferOptions options;
  ModuleReader reader(file, options);
  LOOM_ASSIGN(std::vector<ModuleLayer> modules, reader.read());
  std::vector<TensorLayer> layers;
  for (ModuleLayer& module : modules) {
    TensorLayer layer;
    layer.name = std::move(module.name);
    layer.config = std::move(module.config);
    for (const ModuleParam& param : module.params) {
      for (const InferredPiece& piece : param.pieces)
        layer.tensors.emplace_back(param.name, piece.tensor);
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace loom::core
