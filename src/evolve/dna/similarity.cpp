#include "evolve/dna/similarity.hpp"

#include <algorithm>

#include "evolve/merging/sums.hpp"
#include "evolve/merging/weights.hpp"

namespace loom::core {
namespace {

constexpr int64_t kValuesAtOnce = int64_t{1} << 22;  // of all cells of a bucket
constexpr int64_t kSumsAtOnce = int64_t{1} << 19;    // of 64 bytes

// One leaf of some cells of both networks.
class LeafProducts {
 public:
  LeafProducts(const SignedNetwork& a, std::span<const size_t> rows, const SignedNetwork& b,
               const std::vector<size_t>& columns, size_t leaf)
      : a_(a),
        b_(b),
        rows_(rows),
        columns_(columns),
        leaf_(leaf),
        sums_(rows.size() * columns.size()) {}

  Status run(ThreadPool& pool, const Compared& compared) {
    const int64_t count = leaf_of(a_, rows_[0]).count;
    const auto cells = static_cast<int64_t>(rows_.size() + columns_.size());
    step_ = std::clamp<int64_t>(kValuesAtOnce / cells / 64 * 64, 64, int64_t{1} << 16);
    values_.resize(static_cast<size_t>(cells * std::min(step_, count)));
    for (int64_t first = 0; first < count; first += step_) {
      const int64_t n = std::min(step_, count - first);
      add(first, n, pool);
      if (compared && !compared(static_cast<uint64_t>(n) * sums_.size()))
        return make_error(Code::cancelled, "stopped");
    }
    return {};
  }
  // Adds this leaf's part of the similarities.
  void add_to(double* out, size_t stride) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const SignatureLeaf& x = leaf_of(a_, rows_[i]);
      for (size_t j = 0; j < columns_.size(); ++j) {
        const SignatureLeaf& y = leaf_of(b_, columns_[j]);
        if (x.share == 0 || y.share == 0) continue;
        const double cosine =
            cosine_of(sums_[i * columns_.size() + j].total(), x.squares, y.squares);
        out[i * stride + j] += cosine * __builtin_sqrt(x.share * y.share);
      }
    }
  }

 private:
  const SignatureLeaf& leaf_of(const SignedNetwork& network, size_t cell) const {
    return network.cells[cell].leaves[leaf_];
  }
  // Lanes read cells, meet, and sum pairs; whose pair is whose does not change a sum.
  void add(int64_t first, int64_t n, ThreadPool& pool) {
    const size_t rows = rows_.size(), columns = columns_.size();
    const auto step = static_cast<size_t>(std::min<int64_t>(step_, n));
    pool.run([&](int lane, int lanes) {
      const auto mine = static_cast<size_t>(lane), all = static_cast<size_t>(lanes);
      for (size_t c = mine; c < rows + columns; c += all) {
        const bool of_a = c < rows;
        const SignedNetwork& network = of_a ? a_ : b_;
        const size_t cell = of_a ? rows_[c] : columns_[c - rows];
        leaf_values(*network.network, leaf_of(network, cell), first, n, values_.data() + c * step);
      }
      pool.barrier(lane);
      for (size_t pair = mine; pair < rows * columns; pair += all) {
        const size_t i = pair / columns, j = pair % columns;
        sums_[pair].add_products(values_.data() + i * step, values_.data() + (rows + j) * step, n);
      }
    });
  }

  const SignedNetwork &a_, &b_;
  std::span<const size_t> rows_;
  const std::vector<size_t>& columns_;
  size_t leaf_;
  int64_t step_ = 0;
  std::vector<LaneSum> sums_;
  std::vector<float> values_;
};

// A vector of zeros is like another one, and like nothing else.
void settle_zeros(const SignedNetwork& a, std::span<const size_t> rows, const SignedNetwork& b,
                  const std::vector<size_t>& columns, double* out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < columns.size(); ++j) {
      double& s = out[i * columns.size() + j];
      const bool zero = a.cells[rows[i]].zero();
      if (zero || b.cells[columns[j]].zero()) s = zero == b.cells[columns[j]].zero() ? 1.0 : 0.0;
      s = std::clamp(s, -1.0, 1.0);
    }
  }
}

}  // namespace

Result<std::vector<double>> similarities(const SignedNetwork& a, const std::vector<size_t>& rows,
                                         const SignedNetwork& b, const std::vector<size_t>& columns,
                                         ThreadPool& pool, const Compared& compared) {
  std::vector<double> out(rows.size() * columns.size(), 0.0);
  if (out.empty()) return out;
  const auto width = static_cast<int64_t>(columns.size());
  const auto at_once = static_cast<size_t>(std::max<int64_t>(1, kSumsAtOnce / width));
  for (size_t first = 0; first < rows.size(); first += at_once) {
    const auto some = std::span(rows).subspan(first, std::min(at_once, rows.size() - first));
    double* part = out.data() + first * columns.size();
    for (size_t leaf = 0; leaf < a.cells[rows[0]].leaves.size(); ++leaf) {
      LeafProducts products(a, some, b, columns, leaf);
      LOOM_TRY(products.run(pool, compared));
      products.add_to(part, columns.size());
    }
    settle_zeros(a, some, b, columns, part);
  }
  return out;
}

// ---- cells of other widths ----------------------------------------------------------------------

namespace {

// Sums over the leading blocks of two leaves.
struct CommonBlock {
  LaneSum ab, aa, bb;
  int64_t count = 0;
};

void add_block(const Network& a, int pa, const Network& b, int pb, CommonBlock& block) {
  const Shape &sa = a.params()[static_cast<size_t>(pa)].spec.shape,
              &sb = b.params()[static_cast<size_t>(pb)].spec.shape;
  const bool matrix = sa.rank() == 2;
  const int64_t rows = matrix ? std::min(sa[0], sb[0]) : 1;
  const int64_t cols_a = matrix ? sa[1] : sa.count(), cols_b = matrix ? sb[1] : sb.count();
  const int64_t cols = std::min(cols_a, cols_b);
  std::vector<float> x(static_cast<size_t>(cols)), y = x;
  for (int64_t r = 0; r < rows; ++r) {
    packed_values(a, pa, r * cols_a, cols, x.data());
    packed_values(b, pb, r * cols_b, cols, y.data());
    // The tail of a row stays in lanes of that row: the order depends on the shapes only.
    block.ab.add_products(x.data(), y.data(), cols);
    block.aa.add_products(x.data(), x.data(), cols);
    block.bb.add_products(y.data(), y.data(), cols);
  }
  block.count += rows * cols;
}

CommonBlock common_block(const SignedNetwork& a, const SignatureLeaf& la, const SignedNetwork& b,
                         const SignatureLeaf& lb) {
  CommonBlock block;
  for (const int pa : la.params) {
    const ParamSpec& spec = a.network->params()[static_cast<size_t>(pa)].spec;
    for (const int pb : lb.params) {
      const ParamSpec& other = b.network->params()[static_cast<size_t>(pb)].spec;
      if (spec.name == other.name && spec.shape.rank() == other.shape.rank())
        add_block(*a.network, pa, *b.network, pb, block);
    }
  }
  return block;
}

}  // namespace

double aligned_similarity(const SignedNetwork& a, size_t cell_a, const SignedNetwork& b,
                          size_t cell_b) {
  const CellSignature &ca = a.cells[cell_a], &cb = b.cells[cell_b];
  if (ca.type != cb.type || ca.leaves.size() != cb.leaves.size()) return 0;
  if (ca.zero() || cb.zero()) return ca.zero() == cb.zero() ? 1.0 : 0.0;
  double sum = 0;
  int64_t common = 0;
  for (size_t i = 0; i < ca.leaves.size(); ++i) {
    const SignatureLeaf &la = ca.leaves[i], &lb = cb.leaves[i];
    const CommonBlock block = common_block(a, la, b, lb);
    common += block.count;
    const double share = __builtin_sqrt(la.share * lb.share);
    if (share > 0) sum += cosine_of(block.ab.total(), block.aa.total(), block.bb.total()) * share;
  }
  const double factor = 2 * static_cast<double>(common) / static_cast<double>(ca.count + cb.count);
  return std::clamp(sum * factor, -1.0, 1.0);
}

}  // namespace loom::core
