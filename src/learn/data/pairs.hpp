// Relations of embeddings, for losses of pairs (LossForm::pairs). The labels decide which rows of a
// batch should be near each other and which far apart. The host makes the relation of the rows
// [R, R]; all else is recorded (learn/loss). Drawing batches is not part of this file. R: rows of
// all predictions of a batch.
//
// Row p has the label of a row i, row n has another label. The loss of a batch is the weighted mean
// over its anchors (Anchors); other rows have weight 0. Rows with an ignored label, and rows that
// only fill a batch, are neither p nor n.
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

// Scores of the embeddings of a whole data set: the sum of the losses of shuffled batches, since
// labels of a file may be sorted, and the count of their anchors.
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
