#include "llm/adapters.hpp"

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/adapters/merge.hpp"

namespace loom::core {
namespace {

Status load_matrix(Network& network, const std::string& path, const std::vector<float>& values,
                   ThreadPool& pool) {
  const int index = network.find_param(path);
  if (index < 0) return make_error(Code::not_found, cat("no parameter '", path, "'"));
  const int64_t cols = network.params()[static_cast<size_t>(index)].spec.shape[1];
  const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
    std::copy_n(values.data() + first * cols, count * cols, out);
    return {};
  };
  return network.load_param(index, DType::f32, rows, pool);
}

}  // namespace

Result<Network> with_model_adapters(std::shared_ptr<const Network> base,
                                    const std::vector<ModelAdapter>& adapters, ThreadPool& pool) {
  GridSpec grid = grid_of(*base);
  for (const ModelAdapter& adapter : adapters) {
    for (const WeightAdapter& weight : adapter.weights) {
      Cell cell = *grid.find(weight.cell);
      cell.adapters.push_back({{weight.below}, adapter.name, weight.rank, weight.scale});
      LOOM_TRY(grid.put(weight.cell, std::move(cell)));
    }
  }
  LOOM_ASSIGN(Network network, sharing(std::move(base), grid));
  for (const ModelAdapter& adapter : adapters) {
    for (const WeightAdapter& weight : adapter.weights) {
      const std::string path = cat(weight.cell.str(), "/", weight.below, ".", adapter.name, ".");
      LOOM_TRY(load_matrix(network, path + "a", weight.a, pool));
      LOOM_TRY(load_matrix(network, path + "b", weight.b, pool));
    }
  }
  return network;
}

}  // namespace loom::core
