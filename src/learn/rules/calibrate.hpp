// Post-training quantization. A RangeObserver sees what reaches every weight matrix while a network
// runs on sample data; clip_rows() then narrows each row of a matrix to the range in which its
// quantized form gives the smallest error of the products with such inputs (MSE range setting,
// Nagel et al., A White Paper on Neural Network Quantization, 2021, section 3.1, of outputs, not
// weights). Narrowed values are packed by the same rule as all others, so nothing but the masters
// changes.
#pragma once

#include <string>
#include <vector>

#include "grid/traced.hpp"
#include "ops/args/layers.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// What the inputs of one matrix [N, K] looked like: their extremes, and some of them. For a
// convolution an input is a patch.
struct InputRange {
  static constexpr int64_t kSamples = 256;  // fewer once they were thinned out

  std::vector<float> samples;  // [sampled][K]: every `stride`th of the inputs seen
  int64_t sampled = 0, stride = 1, seen = 0;
  float min = 0, max = 0;

  // Takes one more input into account: row(K) fills a buffer of K numbers when asked.
  template <class Row>
  void add(int64_t k, Row&& row) {
    if (seen++ % stride != 0) return;
    if (sampled == kSamples) thin_out(k);
    if ((seen - 1) % stride != 0) return;
    samples.resize(static_cast<size_t>((sampled + 1) * k));
    row(samples.data() + sampled++ * k);
  }

 private:
  void thin_out(int64_t k);  // every second one stays
};

class RangeObserver {
 public:
  // network: finalized for one batch, loaded; its packed weights must stay where they are.
  // carry_feedback: as in TrainStepOptions.
  static Result<RangeObserver> create(const Network& network, const Ops& ops, ThreadPool& pool,
                                      bool carry_feedback = false);
  RangeObserver(RangeObserver&&) noexcept;
  RangeObserver& operator=(RangeObserver&&) noexcept;
  ~RangeObserver();

  // To be filled before run().
  const Tensor& x() const { return network_.x; }
  // One batch, of which the first `samples` count.
  Status run(int64_t samples);
  // Of every parameter, by its index. Matrices that no matmul and no ungrouped
  // convolution reads have none.
  const std::vector<InputRange>& ranges() const { return ranges_; }

 private:
  // One op that multiplies by a parameter.
  struct Reader {
    size_t param = 0;
    bool convolution = false;
    ConvShape shape;
  };
  RangeObserver();
  void add(const Reader& reader, const Tensor& x, int64_t samples);

  TracedNetwork network_;
  FeedbackMemory feedback_;
  std::unique_ptr<Program> program_;
  std::vector<Reader> readers_;  // by id of the note
  std::vector<InputRange> ranges_;
  int64_t batch_ = 1;
};

// What quantizing a matrix costs: root of the mean squared error of its products with the sampled
// inputs (without any: with independent inputs of variance 1), relative to the products.
struct ClipReport {
  std::string path;
  double plain = 0;  // ranges as they are
  double error = 0;  // ranges as chosen, at most `plain`
  double kept = 1;   // mean over rows of chosen range / range
};
// Clamps the rows of `master` (f32 [N, K]) in place. Rows do not touch each other, so this is for
// scales per row or per block.
Result<ClipReport> clip_rows(const Tensor& master, DType dtype, const InputRange& range,
                             const Ops& ops, ThreadPool& pool);

}  // namespace loom::core
