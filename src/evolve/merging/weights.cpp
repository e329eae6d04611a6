#include "evolve/merging/weights.hpp"

#include <algorithm>

#include "bridge/finite_weight.hpp"
#include "dtype/r16/r16.hpp"
#include "llm/decoder.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core {

Result<NetworkSpec> spec_of_model(const OpenedModel& model) {
  if (model.network != nullptr) return model.network->spec;
  LOOM_ASSIGN(GridSpec grid, model_grid(*model.decoder));
  return NetworkSpec{std::move(grid), Shape{1}};
}

const WeightSource& source_of(const OpenedModel& model) {
  if (model.decoder != nullptr) return *model.decoder;
  return *model.network;
}

Status check_weights(const OpenedModel& model, const std::string& path) {
  if (!model.fresh) return {};
  return invalid("is a description and holds no weights; train it first: loom train", path);
}

Result<Network> bare_network(const OpenedModel& model) {
  LOOM_ASSIGN(const NetworkSpec spec, spec_of_model(model));
  return Network::finalize(spec.grid, spec.input.after(1));
}

Status load_weights(Network& network, const WeightSource& source, std::optional<DType> dtype,
                    ThreadPool& pool) {
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& param = network.params()[i];
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, param));
    const DType type = param.dtype.value_or(dtype.value_or(weight.stored));
    LOOM_TRY(load_weight(network, static_cast<int>(i), param.spec.matrix() ? type : DType::f32,
                         weight, pool));
    if (weight.release) weight.release();
  }
  return {};
}

Result<std::shared_ptr<const Network>> load_network(const std::string& path,
                                                    const MemoryBudget& memory, ThreadPool& pool) {
  LOOM_ASSIGN(const OpenedModel model, open_model(path, {.memory = memory}));
  LOOM_TRY(check_weights(model, path));
  LOOM_ASSIGN(const NetworkSpec spec, spec_of_model(model));
  LOOM_TRY(check_parameters(spec, 1, memory, path));
  LOOM_ASSIGN(Network network, bare_network(model));
  LOOM_TRY(load_weights(network, source_of(model), {}, pool));
  return std::shared_ptr<const Network>(std::make_shared<Network>(std::move(network)));
}

void packed_values(const Network& network, int index, int64_t first, int64_t count, float* out) {
  const Param& param = network.params()[static_cast<size_t>(index)];
  const Tensor& held = param.tensor;
  if (!param.spec.matrix()) {
    std::copy_n(held.f32() + first, count, out);
    return;
  }
  const int64_t cols = param.spec.shape[1];
  const R16 geometry = r16_geometry(held.dtype, param.spec.shape[0], cols);
  for (int64_t done = 0; done < count;) {
    const int64_t r = (first + done) / cols, from = (first + done) % cols;
    const int64_t n = std::min(cols - from, count - done);
    r16_decode(geometry, held.data, r, from, n, out + done);
    done += n;
  }
}

Status all_values(const SourceWeight& weight, const ParamSpec& spec, std::vector<float>& out) {
  out.resize(static_cast<size_t>(spec.shape.count()));
  const int64_t rows = spec.matrix() ? spec.shape[0] : spec.shape.count();
  LOOM_TRY(weight.rows(0, rows, out.data()));
  if (weight.release) weight.release();
  return {};
}

}  // namespace loom::core
