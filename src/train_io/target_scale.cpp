#include "train_io/target_scale.hpp"

#include <cmath>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kScale = "target scale", kShift = "target shift";
constexpr double kMaxFactor = 1e9;  // of a Constant
constexpr size_t kMaxTargets = 20;

std::string constant(const std::string& name, float value) {
  return cat("{\"name\": \"", name, "\", \"type\": \"Constant\", \"from\": [], \"shape\": [1, 1], ",
             "\"trained\": false, \"fill\": \"ones\", \"factor\": ", value, "}");
}

// Nodes of one value per target, and of them in a row: the node called `name`.
void add_row(std::string_view name, const std::vector<float>& values,
             std::vector<std::string>& nodes) {
  if (values.size() == 1) {
    nodes.push_back(constant(std::string(name), values[0]));
    return;
  }
  std::vector<std::string> from;
  for (size_t i = 0; i < values.size(); ++i) {
    nodes.push_back(constant(cat(name, " ", i), values[i]));
    from.push_back(cat("\"", name, " ", i, "\""));
  }
  nodes.push_back(cat("{\"name\": \"", name, "\", \"type\": \"Concat\", \"axis\": -1, \"from\": [",
                      join(from, ", "), "]}"));
}

std::string binary(std::string_view name, std::string_view function, std::string_view a,
                   std::string_view b) {
  return cat("{\"name\": \"", name, "\", \"type\": \"Binary\", \"function\": \"", function,
             "\", \"from\": [\"", a, "\", \"", b, "\"]}");
}

const Cell* last_cell(const GridSpec& grid) {
  for (int64_t i = grid.size(); i-- > 0;) {
    if (grid.cell(i) != nullptr) return grid.cell(i);
  }
  return nullptr;
}

}  // namespace

std::string describe_target_scale(const Normalization& stage) {
  for (const auto* values : {&stage.shift, &stage.scale}) {
    for (const float value : *values) {
      if (!(std::abs(value) < kMaxFactor)) return {};
    }
  }
  if (stage.scale.size() > kMaxTargets) return {};
  std::vector<std::string> nodes;
  add_row(kScale, stage.scale, nodes);
  add_row(kShift, stage.shift, nodes);
  nodes.push_back(binary("scaled", "mul", "x", kScale));
  nodes.push_back(binary("target", "add", "scaled", kShift));
  return cat("{\"type\": \"Graph\", \"inputs\": [\"x\"], \"nodes\": [", join(nodes, ", "),
             "], \"outputs\": [\"target\"]}");
}

Normalization find_target_scale(const Dataset& data) {
  const auto each = static_cast<size_t>(data.outputs);
  const auto samples = static_cast<double>(data.samples);
  Normalization out;
  for (size_t j = 0; j < each; ++j) {
    double sum = 0, squares = 0;
    for (size_t i = j; i < data.targets.size(); i += each) sum += data.targets[i];
    const double mean = sum / samples;
    for (size_t i = j; i < data.targets.size(); i += each)
      squares += (data.targets[i] - mean) * (data.targets[i] - mean);
    const double deviation = std::sqrt(squares / samples);
    out.shift.push_back(static_cast<float>(mean));
    out.scale.push_back(deviation > 0 ? static_cast<float>(deviation) : 1.0F);
  }
  return out;
}

namespace {

bool is_row_of_dense(const GridSpec& grid) {
  if (grid.depth() != 1 || grid.rows() != 1 || grid.layers() != 1) return false;
  const Cell* last = grid.size() > 0 ? grid.cell(grid.size() - 1) : nullptr;
  if (last == nullptr || last->layer.disabled || last->layer.def->name != "Dense") return false;
  return last->layer.text(fields::dense::kActivation) == "linear" &&
         last->layer.real(fields::dense::kSoftCap) == 0;
}

}  // namespace

std::optional<NetworkSpec> add_target_scale(const NetworkSpec& network,
                                            const Normalization& stage) {
  const GridSpec& grid = network.grid;
  const std::string cell = describe_target_scale(stage);
  if (!is_row_of_dense(grid) || cell.empty()) return {};
  const std::string one =
      cat("{\"loom\": 1, \"input\": [", stage.scale.size(), "], \"layers\": [", cell, "]}");
  const Result<NetworkSpec> made = parse_network(one, "the output stage");
  if (!made.ok()) return {};
  NetworkSpec out{GridSpec(1, 1, grid.cols() + 1, 1), network.input, network.state_dict};
  for (int64_t x = 0; x <= grid.cols(); ++x) {
    const Cell* from = x < grid.cols() ? grid.cell(x) : made->grid.cell(0);
    if (from != nullptr && !out.grid.put({0, 0, x, 0}, *from).ok()) return {};
  }
  return out;
}

std::optional<Normalization> target_scale_of(const NetworkSpec& network) {
  const Cell* cell = last_cell(network.grid);
  if (cell == nullptr || !cell->layer.def->wired || cell->layer.disabled) return {};
  const std::string_view names = cell->layer.text(fields::graph::kNames);
  if (names.find(kScale) == names.npos || names.find(kShift) == names.npos) return {};
  std::vector<float> values;
  const std::vector<LayerConfig>& nodes = cell->layer.children;
  for (const LayerConfig& node : nodes) {  // the first is one of the fixed values
    if (node.def == nodes[0].def && !node.flag(fields::constant::kTrained))
      values.push_back(static_cast<float>(node.real(fields::constant::kFactor)));
  }
  if (values.empty() || values.size() % 2 != 0) return {};
  const auto half = values.begin() + std::ssize(values) / 2;
  return Normalization{{half, values.end()}, {values.begin(), half}};
}

void standardize_targets(const Normalization& stage, Dataset& data) {
  const size_t each = stage.scale.size();
  for (size_t i = 0; i < data.targets.size(); ++i)
    data.targets[i] = (data.targets[i] - stage.shift[i % each]) / stage.scale[i % each];
}

void apply_target_scale(const Normalization& stage, const Tensor& y) {
  for (int64_t row = 0; row < y.rows(); ++row) {
    float* const values = y.f32_row(row);
    for (size_t i = 0; i < stage.scale.size(); ++i)
      values[i] = values[i] * stage.scale[i] + stage.shift[i];
  }
}

}  // namespace loom::core
