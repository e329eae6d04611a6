#include "evolve/dna/signature.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "evolve/merging/sums.hpp"
#include "evolve/merging/weights.hpp"

namespace loom::core {
namespace {

std::string type_text(const Node& node) {
  std::string text(node.config.def->name);
  if (node.children.empty()) return text;
  std::vector<std::string> children;
  for (const Node& child : node.children) children.push_back(type_text(child));
  return cat(text, "(", join(children, ", "), ")");
}

void add_leaves(const Network& network, const Node& node, const std::string& at,
                std::vector<SignatureLeaf>& leaves) {
  for (size_t i = 0; i < node.children.size(); ++i)
    add_leaves(network, node.children[i], cat(at, "/", i), leaves);
  if (node.params.empty()) return;
  SignatureLeaf leaf;
  leaf.at = at;
  leaf.type = node.config.def->name;
  leaf.params = node.params;
  for (const int index : node.params) {
    const ParamSpec& spec = network.params()[static_cast<size_t>(index)].spec;
    leaf.count += spec.shape.count();
    leaf.shapes += cat(" ", spec.name, " ", spec.shape.str());
  }
  leaves.push_back(std::move(leaf));
}

// The type of most weights of a cell; float32 for vectors only.
std::string majority_type(const Network& network, const std::vector<SignatureLeaf>& leaves) {
  std::map<DType, int64_t> counts;
  for (const SignatureLeaf& leaf : leaves) {
    for (const int index : leaf.params) {
      const Param& param = network.params()[static_cast<size_t>(index)];
      if (param.spec.matrix() && !param.tensor.empty())
        counts[param.tensor.dtype] += param.spec.shape.count();
    }
  }
  DType best = DType::f32;
  int64_t most = 0;
  for (const auto& [dtype, count] : counts) {
    if (count > most) best = dtype, most = count;
  }
  return std::string(dtype_name(best));
}

constexpr int64_t kSquaresBlock = int64_t{1} << 14;

double squares_of(const Network& network, const SignatureLeaf& leaf) {
  LaneSum sum;
  std::vector<float> values(static_cast<size_t>(std::min(kSquaresBlock, leaf.count)));
  for (int64_t first = 0; first < leaf.count; first += kSquaresBlock) {
    const int64_t n = std::min(kSquaresBlock, leaf.count - first);
    leaf_values(network, leaf, first, n, values.data());
    sum.add_products(values.data(), values.data(), n);
  }
  return sum.total();
}

// Distributes `share` of the squared length to the leaves below `node`, from leaf `next` on: equal
// parts to each child (and to the layer's own weights) that is not all zeros.
void share_out(const Node& node, double share, std::vector<SignatureLeaf>& leaves, size_t& next);

// The number of leaves of the subtree, and whether any of them is not zero.
size_t leaves_below(const Node& node) {
  size_t count = node.params.empty() ? 0 : 1;
  for (const Node& child : node.children) count += leaves_below(child);
  return count;
}

bool any_weight(const std::vector<SignatureLeaf>& leaves, size_t first, size_t count) {
  return std::any_of(leaves.begin() + static_cast<std::ptrdiff_t>(first),
                     leaves.begin() + static_cast<std::ptrdiff_t>(first + count),
                     [](const SignatureLeaf& leaf) { return leaf.squares > 0; });
}

void share_out(const Node& node, double share, std::vector<SignatureLeaf>& leaves, size_t& next) {
  int64_t parts = 0;
  size_t at = next;
  for (const Node& child : node.children) {
    const size_t count = leaves_below(child);
    parts += any_weight(leaves, at, count) ? 1 : 0;
    at += count;
  }
  if (!node.params.empty()) parts += any_weight(leaves, at, 1) ? 1 : 0;
  const double each = parts > 0 ? share / static_cast<double>(parts) : 0;
  for (const Node& child : node.children) {
    const bool some = any_weight(leaves, next, leaves_below(child));
    share_out(child, some ? each : 0, leaves, next);
  }
  if (!node.params.empty()) {
    leaves[next].share = leaves[next].squares > 0 ? each : 0;
    ++next;
  }
}

}  // namespace

bool CellSignature::zero() const {
  return std::all_of(leaves.begin(), leaves.end(),
                     [](const SignatureLeaf& leaf) { return leaf.squares == 0; });
}

bool CellSignature::same_lengths(const CellSignature& other) const {
  return std::equal(
      leaves.begin(), leaves.end(), other.leaves.begin(), other.leaves.end(),
      [](const SignatureLeaf& a, const SignatureLeaf& b) { return a.count == b.count; });
}

std::vector<CellSignature> cells_of(const Network& network) {
  std::vector<CellSignature> cells;
  for (const GridNode& node : network.cells()) {
    CellSignature cell;
    cell.at = node.at;
    cell.type = type_text(node.node);
    add_leaves(network, node.node, node.at.str(), cell.leaves);
    for (const SignatureLeaf& leaf : cell.leaves) cell.count += leaf.count;
    cell.dtype = majority_type(network, cell.leaves);
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<CellSignature> signatures_of(const Network& network, ThreadPool& pool) {
  std::vector<CellSignature> cells = cells_of(network);
  std::vector<SignatureLeaf*> all;
  for (CellSignature& cell : cells) {
    for (SignatureLeaf& leaf : cell.leaves) all.push_back(&leaf);
  }
  pool.run([&](int lane, int lanes) {
    for (size_t i = static_cast<size_t>(lane); i < all.size(); i += static_cast<size_t>(lanes))
      all[i]->squares = squares_of(network, *all[i]);
  });
  for (size_t i = 0; i < cells.size(); ++i) {
    size_t next = 0;
    share_out(network.cells()[i].node, 1.0, cells[i].leaves, next);
  }
  return cells;
}

void leaf_values(const Network& network, const SignatureLeaf& leaf, int64_t first, int64_t count,
                 float* out) {
  int64_t begin = 0;  // of the parameter, in the leaf
  for (const int index : leaf.params) {
    const int64_t length = network.params()[static_cast<size_t>(index)].spec.shape.count();
    const int64_t from = std::max(first, begin), to = std::min(first + count, begin + length);
    if (from < to) packed_values(network, index, from - begin, to - from, out + (from - first));
    begin += length;
  }
}

std::string position_text(const Coord& at) {
  return cat(at.z, ",", at.y, ",", at.x, ",", at.l);
}

}  // namespace loom::core
