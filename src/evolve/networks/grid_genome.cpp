#include "evolve/networks/grid_genome.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "grid/init.hpp"

namespace loom::core {
namespace {

std::string dense_text(const LayerConfig& c, const Shape& out) {
  std::string text = out.rank() == 2 ? cat(out.last()) : std::string(c.def->name);
  for (size_t i = 0; i < c.def->fields.size(); ++i) {
    if (c.def->fields[i].name == "activation" && c.text(static_cast<int>(i)) != "linear")
      text += cat(" ", c.text(static_cast<int>(i)));
  }
  if (c.def->container) text += cat(" ", c.def->name);
  return c.disabled ? "(" + text + ")" : text;
}

}  // namespace

Result<GridGenome> GridGenome::of(const NetworkSpec& spec) {
  GridGenome out;
  out.input = spec.input;
  for (int64_t i = 0; i < spec.grid.size(); ++i) {
    const Cell* cell = spec.grid.cell(i);
    if (cell == nullptr) continue;
    const std::string at = cat("cell ", spec.grid.coord(i).str());
    if (cell->link)
      return unsupported(at + " has a link; networks whose cells follow each other evolve");
    if (cell->shared_with)
      return unsupported(at + " shares its weights; networks whose cells own theirs evolve");
    if (!cell->frozen.empty())
      return unsupported(at + " has frozen parameters; networks that learn as a whole evolve");
    out.cells.push_back({cell->layer, cell->dtype, {}});
  }
  LOOM_ASSIGN(const Network network, out.finalized(1));
  if (!network.extra_inputs().empty() || !network.more_outputs().empty())
    return unsupported("networks of one input and one output evolve");
  return out;
}

Result<NetworkSpec> GridGenome::spec() const {
  const auto count = static_cast<int64_t>(cells.size());
  NetworkSpec out{GridSpec(1, 1, std::max<int64_t>(count, 1), 1), input};
  for (int64_t i = 0; i < count; ++i) {
    const GeneCell& gene = cells[static_cast<size_t>(i)];
    Cell cell{gene.layer};
    cell.dtype = gene.dtype;
    LOOM_TRY(out.grid.put({0, 0, i, 0}, std::move(cell)));
  }
  return out;
}

Result<Network> GridGenome::finalized(int64_t batch) const {
  LOOM_ASSIGN(const NetworkSpec described, spec());
  return Network::finalize(described.grid, input.after(batch));
}

GenePosition gene_position(const Param& param) {
  return {static_cast<size_t>(param.cell.x), param.path.substr(param.path.find('/') + 1)};
}

Result<Network> GridGenome::network(int64_t batch, DType dtype, uint64_t seed,
                                    ThreadPool& pool) const {
  LOOM_ASSIGN(Network out, finalized(batch));
  for (size_t i = 0; i < out.params().size(); ++i) {
    const Param& param = out.params()[i];
    const GenePosition gene_at = gene_position(param);
    const auto held = cells[gene_at.cell].values.find(gene_at.name);
    if (held == cells[gene_at.cell].values.end()) continue;
    const std::vector<float>& values = held->second;
    if (static_cast<int64_t>(values.size()) != param.spec.shape.count())
      return invalid(cat("a genome holds ", values.size(), " values for ", param.path));
    const int64_t width = param.spec.shape.last();
    const auto rows = [&](int64_t first, int64_t count, float* to) -> Status {
      std::copy_n(values.data() + first * width, count * width, to);
      return {};
    };
    LOOM_TRY(out.load_param(static_cast<int>(i), param.dtype.value_or(dtype), rows, pool));
  }
  LOOM_TRY(init_params(out, dtype, seed, pool));
  return out;
}

std::string GridGenome::text() const {
  std::string out = cat(input.count());
  const Result<Network> network = finalized(1);
  if (!network.ok()) return out;
  for (const GridNode& cell : network->cells())
    out += "-" + dense_text(cell.node.config, cell.out) +
           (cell.cell->dtype ? cat(" ", dtype_name(*cell.cell->dtype)) : std::string());
  return out;
}

namespace {

// The first share% of a's cells that have the form of b's, and how alike their weights are.
double cosine_of_cells(const GeneCell& a, const GeneCell& b) {
  double dot = 0, left = 0, right = 0;
  for (const auto& [name, values] : a.values) {
    const auto other = b.values.find(name);
    if (other == b.values.end() || other->second.size() != values.size()) return 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto x = static_cast<double>(values[i]), y = static_cast<double>(other->second[i]);
      dot += x * y;
      left += x * x;
      right += y * y;
    }
  }
  return left > 0 && right > 0 ? dot / std::sqrt(left * right) : 0.0;
}

bool same_layer(const LayerConfig& a, const LayerConfig& b) {
  if (a.def != b.def || a.disabled != b.disabled || a.children.size() != b.children.size())
    return false;
  for (size_t i = 0; i < a.def->fields.size(); ++i) {
    const auto field = static_cast<int>(i);
    const FieldType type = a.def->fields[i].type;
    const bool equal = type == FieldType::text   ? a.text(field) == b.text(field)
                       : type == FieldType::list ? a.list(field) == b.list(field)
                                                 : a.real(field) == b.real(field);
    if (!equal) return false;
  }
  for (size_t i = 0; i < a.children.size(); ++i) {
    if (!same_layer(a.children[i], b.children[i])) return false;
  }
  return true;
}

// The points at which the head of one fits the tail of the other: cells from a, skipped cells of b.
std::vector<std::pair<size_t, size_t>> seams(const Network& a, const Network& b) {
  std::vector<std::pair<size_t, size_t>> out;
  for (size_t i = 1; i < a.cells().size(); ++i) {
    for (size_t j = 1; j < b.cells().size(); ++j) {
      if (a.cells()[i - 1].out == b.cells()[j - 1].out) out.emplace_back(i, j);
    }
  }
  return out;
}

void blend_cells(GridGenome& child, const GridGenome& b, double share, CrossReport& report) {
  for (size_t k = 0; k < std::min(child.cells.size(), b.cells.size()); ++k) {
    GeneCell& mine = child.cells[k];
    const GeneCell& other = b.cells[k];
    if (mine.values.empty() || !same_layer(mine.layer, other.layer)) continue;
    const double alike = std::max(0.0, cosine_of_cells(mine, other));
    const double far = share < 0.5 ? 0.0 : 1.0;
    const double part = far + (share - far) * alike;
    if (part == 0) continue;
    for (auto& [name, values] : mine.values) {
      const auto theirs = other.values.find(name);
      if (theirs == other.values.end() || theirs->second.size() != values.size()) continue;
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(static_cast<double>(values[i]) * (1 - part) +
                                       static_cast<double>(theirs->second[i]) * part);
    }
    ++report.blended;
  }
}

}  // namespace

GridGenome cross_genomes(const GridGenome& a, const GridGenome& b, double share, Draws& draws,
                         CrossReport& report) {
  report = {};
  GridGenome child = a;
  report.from_a = static_cast<int64_t>(a.cells.size());
  const bool splice = draws.chance(0.5);
  const Result<Network> first = a.finalized(1), second = b.finalized(1);
  if (splice && first.ok() && second.ok()) {
    const std::vector<std::pair<size_t, size_t>> all = seams(*first, *second);
    if (!all.empty()) {
      const auto [head, rest] = all[draws.below(all.size())];
      child.cells.resize(head);
      child.cells.insert(child.cells.end(), b.cells.begin() + static_cast<std::ptrdiff_t>(rest),
                         b.cells.end());
      report.from_a = static_cast<int64_t>(head);
      report.from_b = static_cast<int64_t>(b.cells.size() - rest);
      return child;
    }
  }
  blend_cells(child, b, share, report);
  return child;
}

}  // namespace loom::core
