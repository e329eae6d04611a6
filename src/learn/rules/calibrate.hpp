// Post-training quantization. A RangeObserver sees the inputs of every weight matrix while a
// network runs on sample data. Then clip_rows() narrows each row of a matrix. The new range gives
// the smallest error of the quantized products with such inputs. This is MSE range setting, of
// outputs, not weights (Nagel et al., A White Paper on Neural Network Quantization, 2021, section
// 3.1). Narrowed values are packed by the same rule as all others, so nothing but the masters
// changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "grid/traced.hpp"
#include "ops/args/layers.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// The inputs of one matrix [N, K]: their extremes, and some of them. For a convolution an input is
// a patch.
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
  // The same, but shows the inputs x of every matrix product instead of their ranges. `input` is
  // equal for products of the same tensor.
  using Visit = std::function<void(size_t param, size_t input, const Tensor& x)>;
  Status visit(const Visit& see);
  // The outputs of the last batch.
  const Tensor& y() const { return network_.y; }
  // The first product that reads the same tensor as the first product with a parameter, or -1.
  std::vector<int64_t> inputs() const;
  // Ranges of every parameter, by its index. Matrices that no matmul and no ungrouped convolution
  // reads have none.
  const std::vector<InputRange>& ranges() const { return ranges_; }

 private:
  // One op that multiplies by a parameter.
  struct Reader {
    size_t param = 0, input = 0;
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

// The cost of quantizing a matrix: root of the mean squared error of its products with the sampled
// inputs, relative to the products. Without inputs, independent ones of variance 1 are assumed.
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
