// Losses of embeddings: what each row of a batch should be near to, and far from, is told by the
// labels of the other rows (triplet, contrastive, infonce). The relation of the rows [R, R] is made
// on the host; all else is recorded from the ops that there are, and its gradient is the
// Differentiator's. Not here: how batches are drawn. R: rows of all predictions of a batch.
//
// With d(i, j) the Euclidean distance of rows i and j, s(i, j) the cosine of their angle, P(i) the
// rows of i's label and N(i) those of other labels, the loss of row i, the anchor, is
//   triplet      hard: max(0, margin + max over P of d - min over N of d); all: the mean over all p
//                of P and n of N of max(0, margin + d(i, p) - d(i, n))     (Hermans et al., 2017)
//   contrastive  the mean over P and N together of d^2 / 2 for p, max(0, margin - d)^2 / 2 for n
//                                                                       (Hadsell et al., 2006)
//   infonce      the mean over p of P of -log(e^(s(i, p) / T) / the sum of e^(s(i, a) / T) over all
//                a of P and N): with one p NT-Xent (Chen et al., 2020), with more the supervised
//                loss "out" (Khosla et al., 2020)
// The loss of a batch is the weighted mean over its anchors. An anchor has a p, for triplet an n
// too, for contrastive either; other rows count nothing. Labels that are ignored, and rows that
// only fill a batch up, are no p and no n.
#pragma once

#include <memory>
#include <span>

#include "learn/data/dataset.hpp"
#include "learn/scribe.hpp"
#include "learn/spec.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {

// Labels of samples: one, which all rows of its prediction have, or one for each row.
class PairLabels {
 public:
  PairLabels(const Dataset& data, int64_t rows_per_sample)
      : data_(&data), rows_per_sample_(rows_per_sample) {}
  int64_t rows_per_sample() const { return rows_per_sample_; }
  int32_t of(int64_t sample, int64_t row) const {
    const bool one = data_->labels_per_sample() == 1;
    return data_->labels[static_cast<size_t>(one ? sample : sample * rows_per_sample_ + row)];
  }
  // Errors: no labels, or another number of them than rows.
  Status check(const LossSpec& loss) const;
  // Errors: no two rows that may be each other's p.
  Status check_pairs(const LossSpec& loss) const;

  // relation [R, R]: 1 for p, -1 for n, 0 for rows that are nothing to each other; may be empty.
  // Returns which rows are anchors. `samples`: those of the batch; rows behind theirs relate to
  // none.
  std::vector<bool> relate(std::span<const int64_t> samples, const LossSpec& loss,
                           const Tensor& relation) const;
  // Of two rows, not the same one: as an element of that matrix.
  int relation(const LossSpec& loss, int64_t sample, int64_t row, int64_t other_sample,
               int64_t other_row) const;

 private:
  const Dataset* data_;
  int64_t rows_per_sample_;
};

// Errors: what does not go with losses of embeddings.
Status check_pair_options(const LossSpec& loss, const RuleSpec& rule);

// The loss of each row times its weight goes to `rows` [R]. Returned: a tensor and the gradient of
// the sum of `rows` by it, from which a Differentiator goes on.
struct PairSeed {
  Tensor value, gradient;
};
Result<PairSeed> record_pairs(TraceBuilder& s, const LossSpec& loss, const Tensor& y,
                              const Tensor& relation, const Tensor& weight, const Tensor& rows);

// What embeddings of a whole data set come to: the sum of the losses of batches in an order that is
// no order of the file's, in which labels may stand sorted, and what their anchors count.
struct PairScore {
  double loss = 0, counted = 0;
  int64_t right = 0, asked = 0;  // rows whose nearest other row has their label; rows that have a p
};
class PairJudge {
 public:
  // For batches of `rows` rows of `width` values; ops of the host.
  static Result<PairJudge> create(const LossSpec& loss, int64_t rows, int64_t width, const Ops& ops,
                                  ThreadPool& pool);
  // embeddings [rows of all samples, width]; weights: of each of them.
  Result<PairScore> score(const PairLabels& labels, int64_t samples,
                          std::span<const float> embeddings, std::span<const double> weights) const;

 private:
  Status add_losses(const PairLabels& labels, int64_t samples, std::span<const float> embeddings,
                    std::span<const double> weights, PairScore& score) const;
  Status add_nearest(const PairLabels& labels, int64_t samples, std::span<const float> embeddings,
                     PairScore& score) const;

  LossSpec loss_;
  Tensor y_, relation_, weight_, rows_;
  std::unique_ptr<Program> program_;
  const Ops* ops_ = nullptr;
  ThreadPool* pool_ = nullptr;
};

}  // namespace loom::core
