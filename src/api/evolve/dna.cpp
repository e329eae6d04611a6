#include "loom/dna.hpp"

#include <algorithm>

#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "evolve/dna/dna.hpp"
#include "evolve/merging/sums.hpp"
#include "evolve/merging/weights.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kDnaModes[] = {"strict", "functional", "aligned", "permutation"};

JsonValue overlaps_json(const std::vector<DnaOverlap>& layers) {
  JsonValue out = JsonValue::object();
  for (const DnaOverlap& layer : layers) out.add(layer.at, JsonValue::real(layer.overlap));
  return out;
}

JsonValue shifts_json(const std::vector<LogicShift>& shifts) {
  JsonValue out = JsonValue::array();
  for (const LogicShift& shift : shifts) {
    JsonValue item = JsonValue::object();
    item.add("source_pos", JsonValue::string(shift.source));
    item.add("target_pos", JsonValue::string(shift.target));
    item.add("overlap", JsonValue::real(shift.overlap));
    out.push(std::move(item));
  }
  return out;
}

JsonValue cells_json(const std::vector<DnaCell>& cells) {
  JsonValue out = JsonValue::array();
  for (const DnaCell& cell : cells) {
    JsonValue item = JsonValue::object();
    item.add("at", JsonValue::string(cell.at));
    item.add("type", JsonValue::string(cell.type));
    item.add("dtype", JsonValue::string(cell.dtype));
    item.add("weights", JsonValue::integer(cell.weights));
    out.push(std::move(item));
  }
  return out;
}

JsonValue matrix_json(const DnaComparison& dna) {
  JsonValue rows = JsonValue::array();
  const size_t width = dna.b.size();
  for (size_t i = 0; i < dna.a.size() && !dna.matrix.empty(); ++i) {
    JsonValue row = JsonValue::array();
    for (size_t j = 0; j < width; ++j) row.push(JsonValue::real(dna.matrix[i * width + j]));
    rows.push(std::move(row));
  }
  return rows;
}

// The values of a vector of any type.
Result<std::vector<double>> plain_values(const loom::Tensor& tensor) {
  if (tensor.dtype() != loom::DType::float32 && tensor.dtype() != loom::DType::float64)
    return invalid(
        cat("a vector of type ", loom::dtype_name(tensor.dtype()), ": give float32 or float64"));
  LOOM_ASSIGN(const loom::Tensor wide, tensor.to(loom::DType::float64));
  LOOM_ASSIGN(const std::span<const double> values, wide.values<double>());
  return std::vector<double>(values.begin(), values.end());
}

}  // namespace
}  // namespace loom::core

namespace loom {

std::string_view dna_mode_name(DnaMode mode) {
  return core::kDnaModes[static_cast<size_t>(mode)];
}

Result<DnaMode> parse_dna_mode(std::string_view name) {
  for (size_t i = 0; i < std::size(core::kDnaModes); ++i) {
    if (name == core::kDnaModes[i]) return static_cast<DnaMode>(i);
  }
  return core::invalid(core::cat("unknown mode '", core::printable(name),
                                 "'; choose strict, functional, aligned or permutation"));
}

std::string DnaComparison::json() const {
  core::JsonValue out = core::JsonValue::object();
  out.add("mode", core::JsonValue::string(std::string(dna_mode_name(mode))));
  out.add("overall_overlap", core::JsonValue::real(overall_overlap));
  out.add("weighted_overlap", core::JsonValue::real(weighted_overlap));
  out.add("coverage", core::JsonValue::real(coverage));
  out.add("layer_overlaps", core::overlaps_json(layers));
  out.add("logic_shifts", core::shifts_json(shifts));
  out.add("a", core::cells_json(a));
  out.add("b", core::cells_json(b));
  out.add("matrix", core::matrix_json(*this));
  return core::dump_json(out);
}

Result<DnaComparison> compare_dna(const std::string& a, const std::string& b,
                                  const DnaOptions& options) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(options.engine));
  Engine::Impl& engine = on.impl();
  const std::lock_guard turn(engine.turn);
  LOOM_ASSIGN(const auto first, core::load_network(a, engine.budget(), engine.pool));
  LOOM_ASSIGN(const auto second, core::load_network(b, engine.budget(), engine.pool));
  return core::compare_networks(*first, *second, options, engine.pool);
}

Result<DnaComparison> compare_dna(const Network& a, const Network& b, const DnaOptions& options) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(options.engine));
  LOOM_ASSIGN(const auto first, a.impl().weights());
  LOOM_ASSIGN(const auto second, b.impl().weights());
  Engine::Impl& engine = on.impl();
  const std::lock_guard turn(engine.turn);
  return core::compare_networks(*first, *second, options, engine.pool);
}

Result<Tensor> dna_signature(const Network& network, std::string_view at) {
  LOOM_ASSIGN(const auto weights, network.impl().weights());
  Engine::Impl& engine = network.impl().engine.impl();
  std::vector<core::CellSignature> cells;
  {
    const std::lock_guard turn(engine.turn);
    cells = core::signatures_of(*weights, engine.pool);
  }
  for (const core::CellSignature& cell : cells) {
    if (core::position_text(cell.at) != at) continue;
    const std::vector<double> vector = core::signature_vector(*weights, cell);
    return Tensor::copy(vector, {static_cast<int64_t>(vector.size())});
  }
  return core::make_error(Code::not_found, core::cat("no cell at '", core::printable(at),
                                                     "'; coordinates are z,y,x,l, as in 0,0,1,0"));
}

Result<double> dna_similarity(const Tensor& a, const Tensor& b) {
  LOOM_ASSIGN(const std::vector<double> x, core::plain_values(a));
  LOOM_ASSIGN(const std::vector<double> y, core::plain_values(b));
  if (x.size() != y.size())
    return core::invalid(
        core::cat("vectors of ", x.size(), " and ", y.size(), " values have no similarity"));
  core::LaneSum ab, aa, bb;
  const auto n = static_cast<int64_t>(x.size());
  ab.add_products(x.data(), y.data(), n);
  aa.add_products(x.data(), x.data(), n);
  bb.add_products(y.data(), y.data(), n);
  return core::cosine_of(ab.total(), aa.total(), bb.total());
}

}  // namespace loom
