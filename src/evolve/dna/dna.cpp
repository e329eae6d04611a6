#include "evolve/dna/dna.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "evolve/merging/permutation.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kMaxPairs = uint64_t{1} << 24;
constexpr int64_t kMinShifted = 4;  // weights; shorter vectors match by chance

// Cells that are comparable with each other.
struct Bucket {
  std::vector<size_t> a, b;
};

// The key has the kind, the length of each leaf and, if it counts, the number type. Different
// shapes of equal length are not aligned: weight i is at another row and column.
std::string bucket_key(const CellSignature& cell, DnaMode mode) {
  std::string key = cell.type;
  for (const SignatureLeaf& leaf : cell.leaves)
    key += mode == DnaMode::aligned ? leaf.shapes + ";" : " " + std::to_string(leaf.count);
  if (mode == DnaMode::strict) key += " " + cell.dtype;
  return key;
}

class Comparer {
 public:
  Comparer(const Network& a, const Network& b, const DnaOptions& options, ThreadPool& pool)
      : a_{&a, signatures_of(a, pool)},
        b_{&b, signatures_of(b, pool)},
        options_(options),
        pool_(pool) {}

  Result<DnaComparison> run() {
    out_.mode = options_.mode;
    for (const CellSignature& cell : a_.cells) out_.a.push_back(described(cell));
    for (const CellSignature& cell : b_.cells) out_.b.push_back(described(cell));
    fill_buckets();
    const bool whole = uint64_t{a_.cells.size()} * b_.cells.size() <= kMaxPairs;
    if (whole) {
      LOOM_TRY(fill_matrix());
    }
    LOOM_TRY(fill_overlaps(whole));
    fill_scores();
    if (whole) fill_shifts();
    return std::move(out_);
  }

 private:
  static DnaCell described(const CellSignature& cell) {
    return {position_text(cell.at), cell.type, cell.dtype, cell.count};
  }
  void fill_buckets();
  Status fill_matrix();
  Status fill_overlaps(bool from_matrix);
  Result<double> own_overlap(size_t i, size_t j);
  void fill_scores();
  void fill_shifts();
  double& at(size_t i, size_t j) { return out_.matrix[i * b_.cells.size() + j]; }

  SignedNetwork a_, b_;
  const DnaOptions& options_;
  ThreadPool& pool_;
  std::map<std::string, Bucket> buckets_;
  std::unordered_map<std::string, size_t> places_;  // of cells of b
  std::vector<std::pair<size_t, size_t>> mates_;    // cells at the same coordinate
  uint64_t done_ = 0, total_ = 0;
  Compared compared_;
  DnaComparison out_;
};

void Comparer::fill_buckets() {
  for (size_t i = 0; i < a_.cells.size(); ++i)
    buckets_[bucket_key(a_.cells[i], options_.mode)].a.push_back(i);
  for (size_t j = 0; j < b_.cells.size(); ++j) {
    buckets_[bucket_key(b_.cells[j], options_.mode)].b.push_back(j);
    places_.emplace(out_.b[j].at, j);
  }
  for (size_t i = 0; i < a_.cells.size(); ++i) {
    const auto found = places_.find(out_.a[i].at);
    if (found != places_.end()) mates_.emplace_back(i, found->second);
  }
  for (const auto& [key, bucket] : buckets_) {
    if (bucket.a.empty()) continue;
    total_ +=
        static_cast<uint64_t>(a_.cells[bucket.a[0]].count) * bucket.a.size() * bucket.b.size();
  }
  if (!options_.progress) return;
  compared_ = [this](uint64_t weights) {
    done_ += weights;
    return options_.progress(std::min(done_, total_), total_);
  };
}

Status Comparer::fill_matrix() {
  out_.matrix.assign(a_.cells.size() * b_.cells.size(), std::numeric_limits<double>::quiet_NaN());
  for (const auto& [key, bucket] : buckets_) {
    LOOM_ASSIGN(const std::vector<double> some,
                similarities(a_, bucket.a, b_, bucket.b, pool_, compared_));
    for (size_t i = 0; i < bucket.a.size(); ++i) {
      for (size_t j = 0; j < bucket.b.size(); ++j)
        at(bucket.a[i], bucket.b[j]) = some[i * bucket.b.size() + j];
    }
  }
  if (options_.mode != DnaMode::aligned) return {};
  for (size_t i = 0; i < a_.cells.size(); ++i) {
    for (size_t j = 0; j < b_.cells.size(); ++j) {
      const bool is_candidate = a_.cells[i].type == b_.cells[j].type && !(at(i, j) == at(i, j));
      if (is_candidate) at(i, j) = aligned_similarity(a_, i, b_, j);
    }
    if (options_.progress && !options_.progress(total_, total_))
      return make_error(Code::cancelled, "stopped");
  }
  return {};
}

// Cells that are not comparable count 0 instead of being skipped: they are a difference.
Result<double> Comparer::own_overlap(size_t i, size_t j) {
  const CellSignature &x = a_.cells[i], &y = b_.cells[j];
  if (bucket_key(x, options_.mode) == bucket_key(y, options_.mode)) {
    LOOM_ASSIGN(const std::vector<double> one, similarities(a_, {i}, b_, {j}, pool_, compared_));
    return one[0];
  }
  return options_.mode == DnaMode::aligned ? aligned_similarity(a_, i, b_, j) : 0.0;
}

Status Comparer::fill_overlaps(bool from_matrix) {
  std::map<size_t, double> reordered;
  if (options_.mode == DnaMode::permutation) reordered = permuted_similarities(a_, b_, pool_);
  for (const auto& [i, j] : mates_) {
    DnaOverlap overlap{out_.a[i].at, out_.a[i].weights, 0};
    if (const auto found = reordered.find(i); found != reordered.end()) {
      overlap.overlap = found->second;
      if (from_matrix) at(i, j) = found->second;
    } else if (from_matrix) {
      overlap.overlap = at(i, j) == at(i, j) ? at(i, j) : 0.0;
    } else {
      LOOM_ASSIGN(overlap.overlap, own_overlap(i, j));
    }
    out_.layers.push_back(std::move(overlap));
  }
  return {};
}

void Comparer::fill_scores() {
  double sum = 0, weighted = 0, weights = 0;
  for (const DnaOverlap& layer : out_.layers) {
    sum += layer.overlap;
    weighted += layer.overlap * static_cast<double>(layer.weights);
    weights += static_cast<double>(layer.weights);
  }
  const auto matched = static_cast<double>(out_.layers.size());
  if (matched > 0) out_.overall_overlap = sum / matched;
  // Without any weights all layers count the same.
  out_.weighted_overlap = weights > 0 ? weighted / weights : out_.overall_overlap;
  const size_t most = std::max(a_.cells.size(), b_.cells.size());
  if (most > 0) out_.coverage = matched / static_cast<double>(most);
}

void Comparer::fill_shifts() {
  std::vector<double> own(a_.cells.size(), -1.0);
  std::vector<size_t> mate(a_.cells.size(), b_.cells.size());
  for (size_t m = 0; m < mates_.size(); ++m) {
    own[mates_[m].first] = out_.layers[m].overlap;
    mate[mates_[m].first] = mates_[m].second;
  }
  struct Move {
    double overlap;
    size_t from, to;
  };
  std::vector<Move> moves;
  for (size_t i = 0; i < a_.cells.size(); ++i) {
    if (a_.cells[i].count < kMinShifted) continue;
    for (size_t j = 0; j < b_.cells.size(); ++j) {
      const double s = at(i, j);  // comparisons with NaN are false
      if (j != mate[i] && s > options_.shift_threshold && s > own[i] + options_.shift_margin)
        moves.push_back({s, i, j});
    }
  }
  std::sort(moves.begin(), moves.end(), [](const Move& x, const Move& y) {
    return x.overlap != y.overlap ? x.overlap > y.overlap
           : x.from != y.from     ? x.from < y.from
                                  : x.to < y.to;
  });
  std::vector<bool> moved(a_.cells.size(), false), taken(b_.cells.size(), false);
  for (const Move& move : moves) {
    if (moved[move.from] || taken[move.to]) continue;
    moved[move.from] = taken[move.to] = true;
    out_.shifts.push_back({out_.a[move.from].at, out_.b[move.to].at, move.overlap});
  }
}

}  // namespace

Result<DnaComparison> compare_networks(const Network& a, const Network& b,
                                       const DnaOptions& options, ThreadPool& pool) {
  const auto share = [](double v) { return v >= -1 && v <= 1; };
  if (!share(options.shift_threshold))
    return invalid("shift_threshold must be from -1 to 1: it is a cosine");
  if (!(options.shift_margin >= 0 && options.shift_margin <= 2))
    return invalid("shift_margin must be from 0 to 2: it is a difference of cosines");
  return Comparer(a, b, options, pool).run();
}

std::vector<double> signature_vector(const Network& network, const CellSignature& cell) {
  if (cell.leaves.empty()) return {1.0};
  std::vector<double> out;
  std::vector<float> values;
  for (const SignatureLeaf& leaf : cell.leaves) {
    values.resize(static_cast<size_t>(leaf.count));
    leaf_values(network, leaf, 0, leaf.count, values.data());
    const double length = __builtin_sqrt(leaf.squares), share = __builtin_sqrt(leaf.share);
    for (const float v : values)
      out.push_back(length > 0 ? static_cast<double>(v) / length * share : 0.0);
  }
  return out;
}

}  // namespace loom::core
