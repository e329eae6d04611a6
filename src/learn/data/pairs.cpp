// Relations of the rows of a batch, and scores of the embeddings of a data set.
#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"
#include "learn/data/pairs.hpp"
#include "learn/scribe.hpp"

namespace loom::core {

Status PairLabels::check(const LossSpec& loss) const {
  const std::string_view name = loss_name(loss.kind);
  if (!data_->has_labels())
    return invalid(cat(name, " needs class labels, which say which samples belong together"));
  const int64_t each = data_->labels_per_sample();
  if (each != 1 && each != rows_per_sample_)
    return invalid(cat("the network gives ", rows_per_sample_,
                       " embeddings per sample, the dataset has ", each, " labels; ", name,
                       " takes one for all of them, or one for each"));
  if (loss.cross_view_only && rows_per_sample_ < 2)
    return invalid(
        cat("pairs across the rows of a sample need two or more of them; "
            "the network gives one embedding per sample"));
  return {};
}

Status PairLabels::check_pairs(const LossSpec& loss) const {
  std::unordered_map<int32_t, int64_t> seen;
  for (int64_t i = 0; i < data_->samples; ++i) {
    for (int64_t r = 0; r < rows_per_sample_; ++r) {
      if (!data_->ignores(of(i, r)) && ++seen[of(i, r)] == 2) return {};
    }
  }
  return invalid(cat("no label occurs there twice, so ", loss_name(loss.kind),
                     " has nothing to bring together"));
}

int PairLabels::relation(const LossSpec& loss, int64_t sample, int64_t row, int64_t other_sample,
                         int64_t other_row) const {
  const int32_t a = of(sample, row), b = of(other_sample, other_row);
  if (data_->ignores(a) || data_->ignores(b)) return 0;
  if (loss.cross_view_only && row == other_row) return 0;
  return a == b ? 1 : -1;
}

std::vector<bool> PairLabels::relate(std::span<const int64_t> samples, const LossSpec& loss,
                                     const Tensor& relation) const {
  const int64_t rows = static_cast<int64_t>(samples.size()) * rows_per_sample_;
  if (!relation.empty()) std::fill_n(relation.f32(), relation.shape.count(), 0.0f);
  std::vector<bool> anchors(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t sample = samples[static_cast<size_t>(i / rows_per_sample_)];
    bool same = false, other = false;
    for (int64_t j = 0; j < rows; ++j) {
      if (i == j) continue;
      const int is =
          this->relation(loss, sample, i % rows_per_sample_,
                         samples[static_cast<size_t>(j / rows_per_sample_)], j % rows_per_sample_);
      same = same || is > 0;
      other = other || is < 0;
      if (!relation.empty()) relation.f32_row(i)[j] = static_cast<float>(is);
    }
    const Anchors needed = loss_def(loss.kind).anchors;
    anchors[static_cast<size_t>(i)] = needed == Anchors::both     ? same && other
                                      : needed == Anchors::either ? same || other
                                                                  : same;
  }
  return anchors;
}

Result<PairJudge> PairJudge::create(const LossSpec& loss, int64_t rows, int64_t width,
                                    const Ops& ops, ThreadPool& pool) {
  PairJudge judge;
  judge.loss_ = loss;
  judge.ops_ = &ops;
  judge.pool_ = &pool;
  Trace trace(DType::f32);
  TraceBuilder s(trace);
  LossTensors& t = judge.t_;
  t.y = s.fresh(Shape{rows, width});
  t.target = s.fresh(Shape{rows, rows});
  t.weight = s.fresh(Shape{rows});
  t.rows = s.fresh(Shape{rows});
  LOOM_TRY(loss_def(loss.kind).record(s, loss, t));
  Tensor* const pins[] = {&t.y, &t.target, &t.weight, &t.rows};
  LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, ops, pool));
  judge.program_ = std::make_unique<Program>(std::move(program));
  return judge;
}

Status PairJudge::add_losses(const PairLabels& labels, int64_t samples,
                             std::span<const float> embeddings, std::span<const double> weights,
                             PairScore& score) const {
  constexpr uint64_t kOrder = uint64_t{1} << 51;  // a stream of its own
  const std::vector<int64_t> order = permutation(samples, 0, kOrder);
  const int64_t each = labels.rows_per_sample(), width = t_.y.cols(), batch = t_.y.rows() / each;
  for (int64_t first = 0; first < samples; first += batch) {
    const int64_t count = std::min(batch, samples - first);
    const auto here =
        std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    const std::vector<bool> anchors = labels.relate(here, loss_, t_.target);
    std::fill_n(t_.weight.f32(), t_.y.rows(), 0.0f);
    std::fill_n(t_.y.f32(), t_.y.shape.count(), 0.0f);
    for (int64_t r = 0; r < count * each; ++r) {
      const int64_t row = here[static_cast<size_t>(r / each)] * each + r % each;
      std::copy_n(embeddings.data() + row * width, width, t_.y.f32_row(r));
      const double weight = anchors[static_cast<size_t>(r)] ? weights[static_cast<size_t>(row)] : 0;
      t_.weight.f32()[r] = static_cast<float>(weight);
      score.counted += weight;
    }
    LOOM_TRY(program_->run());
    for (int64_t r = 0; r < count * each; ++r) score.loss += static_cast<double>(t_.rows.f32()[r]);
  }
  return {};
}

namespace {

// Rows as they are compared; unit: of length 1.
std::vector<float> compared(std::span<const float> embeddings, int64_t width, bool unit) {
  std::vector<float> out(embeddings.begin(), embeddings.end());
  for (size_t at = 0; unit && at < out.size(); at += static_cast<size_t>(width)) {
    const auto row = std::span(out).subspan(at, static_cast<size_t>(width));
    double squares = 0;
    for (const float v : row) squares += static_cast<double>(v) * static_cast<double>(v);
    const double length = std::max(__builtin_sqrt(squares), 1e-12);
    for (float& v : row) v = static_cast<float>(static_cast<double>(v) / length);
  }
  return out;
}

}  // namespace

// By products of blocks of rows with all of them: |i - j|^2 is least where |j|^2 / 2 - i j is.
Status PairJudge::add_nearest(const PairLabels& labels, int64_t samples,
                              std::span<const float> embeddings, PairScore& score) const {
  constexpr int64_t kBlock = 128;
  const int64_t each = labels.rows_per_sample(), width = t_.y.cols(), rows = samples * each;
  std::vector<float> x = compared(embeddings, width, loss_def(loss_.kind).by_angle);
  std::vector<float> halves(static_cast<size_t>(rows));
  std::vector<float> products(static_cast<size_t>(kBlock * rows));
  const Tensor all = f32_matrix(x.data(), rows, width);
  Recorder recorder(*ops_, *pool_, ActivationMode::f32);
  LOOM_TRY(recorder.reduce({all, f32_vector(halves.data(), rows), ReduceKind::sum_squares}));
  LOOM_TRY(recorder.flush());
  for (float& h : halves) h *= 0.5f;
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t count = std::min(kBlock, rows - first);
    LOOM_TRY(recorder.gemm({all.slice_rows(first, count), all,
                            f32_matrix(products.data(), count, rows), false, true}));
    LOOM_TRY(recorder.flush());
    for (int64_t i = first; i < first + count; ++i) {
      const float* row = products.data() + (i - first) * rows;
      int64_t nearest = -1;
      bool asked = false;
      for (int64_t j = 0; j < rows; ++j) {
        if (i == j) continue;
        const int is = labels.relation(loss_, i / each, i % each, j / each, j % each);
        asked = asked || is > 0;
        if (is == 0) continue;
        if (nearest < 0 || halves[static_cast<size_t>(j)] - row[j] <
                               halves[static_cast<size_t>(nearest)] - row[nearest])
          nearest = j;
      }
      if (!asked) continue;
      ++score.asked;
      const bool right = labels.of(i / each, i % each) == labels.of(nearest / each, nearest % each);
      score.right += right ? 1 : 0;
    }
  }
  return {};
}

Result<PairScore> PairJudge::score(const PairLabels& labels, int64_t samples,
                                   std::span<const float> embeddings,
                                   std::span<const double> weights) const {
  PairScore score;
  LOOM_TRY(add_losses(labels, samples, embeddings, weights, score));
  LOOM_TRY(add_nearest(labels, samples, embeddings, score));
  return score;
}

}  // namespace loom::core
