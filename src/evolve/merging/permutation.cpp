#include "evolve/merging/permutation.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "evolve/merging/assignment.hpp"
#include "evolve/merging/sums.hpp"
#include "evolve/merging/weights.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxExact = 1024, kMaxUnits = 8192;

bool is_dense(const GridNode& cell) {
  return cell.node.config.def->name == "Dense" && !cell.node.disabled() &&
         !cell.cell->shared_with && !cell.node.params.empty() && cell.node.adapters.empty();
}

// Whether cell i feeds cell i + 1 and no other, and both are Dense.
bool feeds_next_alone(const Network& network, size_t i) {
  const std::vector<GridNode>& cells = network.cells();
  if (i + 1 >= cells.size() || !is_dense(cells[i]) || !is_dense(cells[i + 1])) return false;
  if (cells[i + 1].link >= 0) return false;
  // A layer after the next may add that one's input.
  if (i + 2 < cells.size() && wants_skip(cells[i + 2].node.config)) return false;
  return std::none_of(cells.begin(), cells.end(), [&](const GridNode& cell) {
    return cell.link == static_cast<int>(i) ||
           (cell.cell->shared_with &&
            (*cell.cell->shared_with == cells[i].at || *cell.cell->shared_with == cells[i + 1].at));
  });
}

// Weight and bias of a Dense cell, one row per unit: [out][in + 1], without bias [out][in].
struct Units {
  int64_t rows = 0, inputs = 0, cols = 0;
  std::vector<float> values;
  const float* row(int64_t r) const { return values.data() + r * cols; }
};

Units units_of(const Network& network, const GridNode& cell) {
  Units units;
  const Param& weight = network.params()[static_cast<size_t>(cell.node.params[0])];
  units.rows = weight.spec.shape[0];
  units.inputs = weight.spec.shape[1];
  const bool bias = cell.node.params.size() > 1;
  units.cols = units.inputs + (bias ? 1 : 0);
  units.values.resize(static_cast<size_t>(units.rows * units.cols));
  for (int64_t r = 0; r < units.rows; ++r) {
    float* row = units.values.data() + r * units.cols;
    packed_values(network, cell.node.params[0], r * units.inputs, units.inputs, row);
    if (bias) packed_values(network, cell.node.params[1], r, 1, row + units.inputs);
  }
  return units;
}

// Input i becomes the old input order[i].
void reorder_inputs(Units& units, const std::vector<int64_t>& order) {
  std::vector<float> row(static_cast<size_t>(units.inputs));
  for (int64_t r = 0; r < units.rows; ++r) {
    float* values = units.values.data() + r * units.cols;
    std::copy_n(values, units.inputs, row.data());
    for (int64_t i = 0; i < units.inputs; ++i)
      values[i] = row[static_cast<size_t>(order[static_cast<size_t>(i)])];
  }
}

double dot_product(const float* a, const float* b, int64_t count) {
  LaneSum sum;
  sum.add_products(a, b, count);
  return sum.total();
}

// The unit of b that matches each unit of a.
std::vector<int64_t> pair_units(const Units& a, const Units& b, ThreadPool& pool) {
  const int64_t n = a.rows;
  std::vector<double> aa(static_cast<size_t>(n)), bb(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    aa[static_cast<size_t>(i)] = dot_product(a.row(i), a.row(i), a.cols);
    bb[static_cast<size_t>(i)] = dot_product(b.row(i), b.row(i), b.cols);
  }
  std::vector<double> gains(static_cast<size_t>(n * n));
  pool.run([&](int lane, int lanes) {
    for (int64_t i = lane; i < n; i += lanes) {
      for (int64_t j = 0; j < n; ++j)
        gains[static_cast<size_t>(i * n + j)] =
            cosine_of(dot_product(a.row(i), b.row(j), a.cols), aa[static_cast<size_t>(i)],
                      bb[static_cast<size_t>(j)]);
    }
  });
  return n <= kMaxExact ? best_assignment(gains, n) : greedy_assignment(gains, n);
}

double similarity_of(const Units& a, const Units& b, const std::vector<int64_t>& order) {
  LaneSum ab, aa, bb;
  for (int64_t r = 0; r < a.rows; ++r) {
    const float* other = b.row(order[static_cast<size_t>(r)]);
    ab.add_products(a.row(r), other, a.cols);
    aa.add_products(a.row(r), a.row(r), a.cols);
    bb.add_products(other, other, a.cols);
  }
  return cosine_of(ab.total(), aa.total(), bb.total());
}

std::optional<size_t> cell_at(const Network& network, const Coord& at) {
  for (size_t i = 0; i < network.cells().size(); ++i) {
    if (network.cells()[i].at == at) return i;
  }
  return {};
}

std::vector<int64_t> as_they_are(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

std::map<size_t, double> permuted_similarities(const SignedNetwork& a, const SignedNetwork& b,
                                               ThreadPool& pool) {
  std::map<size_t, double> out;
  const Network &na = *a.network, &nb = *b.network;
  std::vector<int64_t> order;  // of the inputs of the current cell; empty means unchanged
  for (size_t i = 0; i < na.cells().size(); ++i) {
    const std::optional<size_t> j = cell_at(nb, na.cells()[i].at);
    const bool pair = j && is_dense(na.cells()[i]) && is_dense(nb.cells()[*j]) &&
                      a.cells[i].same_lengths(b.cells[*j]);
    if (!pair) {
      order.clear();
      continue;
    }
    const Units first = units_of(na, na.cells()[i]);
    Units second = units_of(nb, nb.cells()[*j]);
    if (first.rows != second.rows || first.inputs != second.inputs) {
      order.clear();
      continue;
    }
    const bool reordered = !order.empty();
    if (reordered) reorder_inputs(second, order);
    // The next cell must be the same in both, or reordering would separate this one from it.
    const bool hidden = feeds_next_alone(na, i) && feeds_next_alone(nb, *j) &&
                        na.cells()[i + 1].at == nb.cells()[*j + 1].at &&
                        a.cells[i + 1].same_lengths(b.cells[*j + 1]) && first.rows <= kMaxUnits;
    const std::vector<int64_t> mine =
        hidden ? pair_units(first, second, pool) : as_they_are(first.rows);
    if (hidden || reordered) out[i] = similarity_of(first, second, mine);
    order = hidden ? mine : std::vector<int64_t>();
  }
  return out;
}

}  // namespace loom::core
