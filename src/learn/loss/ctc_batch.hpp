// Connectionist temporal classification (Graves et al., 2006): the loss of label sequences that are
// shorter than the rows of a prediction, over all the ways in which the rows can spell them. A row
// says one class or the blank; equal classes that follow each other are one, then blanks go.
// Labels of a sample are adjacent, those after its end are Dataset::ignored. The loss of a
// sample is -log p(labels); forward-backward in the log domain, in doubles, on the host.
#pragma once

#include <span>

#include "base/threads/thread_pool.hpp"
#include "learn/data/dataset.hpp"
#include "learn/spec.hpp"

namespace loom::core {

// -log p of one sample. logits [steps, classes]; gradient: weight x dL/dlogits of the same shape,
// or null. Infinite where the labels do not fit into the steps; the gradient is 0 then.
double ctc_loss(const float* logits, int64_t steps, int64_t classes,
                std::span<const int32_t> labels, int64_t blank, double weight, float* gradient);
// The labels that the largest output of each row spells.
std::vector<int32_t> ctc_best_path(const float* logits, int64_t steps, int64_t classes,
                                   int64_t blank);
// Rows that so many labels need: one each, and a blank between equal neighbours.
int64_t ctc_least_steps(std::span<const int32_t> labels);
// The labels of a sample, without what follows their end.
std::span<const int32_t> ctc_labels(const Dataset& data, int64_t sample);
// Rows of a prediction that stand for something: the length of the sample, where it has one.
int64_t ctc_steps(const Dataset& data, int64_t sample, int64_t rows);

// Errors: no labels, blanks among them, labels after the end, more than the rows can spell.
Status check_ctc(const Dataset& data, int64_t rows, int64_t classes, int64_t blank);

struct CtcBatch {
  std::vector<double> losses;  // per sample, not weighted
  int64_t right = 0;           // samples whose best path spells their labels
};
// `samples` name those of the batch; y holds their rows one after the other. weights and dy, or
// neither: dy becomes the gradient of the sum of weight x loss. The same bits for any threads.
CtcBatch ctc_batch(const Dataset& data, std::span<const int64_t> samples, const LossSpec& loss,
                   const Tensor& y, std::span<const double> weights, const Tensor& dy,
                   ThreadPool& pool);

}  // namespace loom::core
