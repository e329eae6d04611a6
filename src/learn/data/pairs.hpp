// Relations of embeddings, for losses of pairs (LossForm::pairs): the labels of the other rows of a
// batch tell which rows each row should be near to, and far from. The relation of the rows [R, R]
// is computed on the host; the rest is recorded (learn/loss). How batches are drawn is not part of
// this file. R: rows of all predictions of a batch.
//
// Row p is of the label of a row i, n is of another label. The loss of a batch is the weighted mean
// over its anchors (Anchors); other rows have weight 0. Labels that are ignored, and rows that only
// fill a batch up, are no p and no n.
#pragma once

#include <memory>
#include <span>

#include "learn/data/dataset.hpp"
#include "learn/loss/loss.hpp"
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
  // Returns which rows are anchors. `samples`: those of the batch. Rows after theirs relate to no
  // row.
  std::vector<bool> relate(std::span<const int64_t> samples, const LossSpec& loss,
                           const Tensor& relation) const;
  // The element of that matrix for two different rows.
  int relation(const LossSpec& loss, int64_t sample, int64_t row, int64_t other_sample,
               int64_t other_row) const;

 private:
  const Dataset* data_;
  int64_t rows_per_sample_;
};

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
  LossTensors t_;
  std::unique_ptr<Program> program_;
  const Ops* ops_ = nullptr;
  ThreadPool* pool_ = nullptr;
};

}  // namespace loom::core
