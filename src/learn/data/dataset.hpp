// Dataset: samples in memory, as plain data. Readers of files (engine/) make it, Trainer and
// evaluation use it. Inputs are numbers, or ids for networks that begin with an Embedding; targets
// are numbers or class labels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads/thread_pool.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

// Inputs that are made each time a batch asks for them, of samples that do not fit into memory.
class InputSource {
 public:
  virtual ~InputSource() = default;
  // The values of its sample `row` to `to`: the same at every call, from any number of threads.
  virtual Status read(int64_t row, float* to) const = 0;
};

// The values that samples give an input of the network besides its first.
struct ExtraInput {
  std::string name;  // InputSpec::name
  Shape sample;
  std::vector<float> values;  // [samples][sample], or empty
  std::vector<int32_t> ids;   // the same as ids, or empty
};

struct Dataset {
  int64_t samples = 0;
  Shape sample;               // of one input, without the batch axis; rank 0: one number
  std::vector<float> inputs;  // [samples][sample], or empty
  std::vector<int32_t> ids;   // the same as ids, or empty
  // In place of `inputs`: sample i is row source_rows[i] of the source.
  std::shared_ptr<const InputSource> source = {};
  std::vector<int64_t> source_rows = {};
  std::vector<ExtraInput> more = {};  // of networks that have several inputs, in any order
  int64_t outputs = 0;                // numbers per target
  std::vector<float> targets;         // [samples][outputs], or empty
  std::vector<int32_t> labels;        // [samples][labels per sample], or empty
  int64_t classes = 0;                // labels are below it
  std::vector<float> weights;         // [samples]: what a sample counts in the loss; empty: 1
  std::optional<int32_t> ignored;     // labels of this value count nothing
  // [samples]: how many positions of a sample's first axis are real. The positions after them are
  // padding, which layers along the axis and losses skip. If empty, all are real.
  std::vector<int32_t> lengths;
  bool ordered = false;  // windows of a series: a split never draws them, because they share rows

  // That of this name, or null.
  const ExtraInput* extra_input(std::string_view name) const;
  // Inputs are numbers that the samples hold or a source makes; else they are ids.
  bool has_numbers() const { return source != nullptr || !inputs.empty(); }
  // The numbers of sample `i`.
  Status read_inputs(int64_t i, float* to) const;
  // Those of samples order[first .. first + count), one after the other, several at a time. The
  // Error is that of the first place that has one.
  Status read_inputs(std::span<const int64_t> order, int64_t first, int64_t count, float* to,
                     ThreadPool* pool) const;
  bool has_labels() const { return !labels.empty(); }
  bool ignores(int32_t label) const { return ignored && label == *ignored; }
  int64_t labels_per_sample() const {
    return samples > 0 ? static_cast<int64_t>(labels.size()) / samples : 0;
  }
  // Whether row `row` of the `rows` that a network predicts for a sample stands for padding: where
  // it predicts one for each position.
  bool pads(int64_t i, int64_t row, int64_t rows) const {
    return !lengths.empty() && rows == sample[0] && row >= lengths[static_cast<size_t>(i)];
  }
  // Whether value `i` of targets or labels, `each` to a sample, is of a padded position, if they
  // are a target for each position.
  bool of_padding(size_t i, int64_t each) const;
  // Tensors that a pass needs for samples order[first .. first + count); empty without lengths.
  std::vector<int64_t> lengths_of(std::span<const int64_t> order, int64_t first,
                                  int64_t count) const;
  // Writes zeros over the padding of the inputs.
  void clear_padding();
  // Labels become numbers, which are targets.
  void labels_to_targets();
  // The first thing that is wrong: no samples, sizes that do not agree, a label or id out of range,
  // a number that is not finite; the Error names the sample. Targets of padding may be anything.
  Status check() const;
  // The same of the inputs alone, and of targets or labels.
  Status check_lengths() const;
  Status check_inputs() const;
  Status check_targets() const;
  // The samples of these numbers, in this order, as a set of their own.
  Dataset select(std::span<const int64_t> rows) const;
  // Becomes that, where `rows` ascend, without a copy.
  void keep(std::span<const int64_t> rows);
  // That its values take.
  uint64_t bytes() const;
};

// As many indices as `data` has samples, with every class equally often if possible. Samples of
// rare classes repeat, and some of the others are left out. Samples need one label each. A function
// of (seed, epoch).
std::vector<int64_t> balanced_order(const Dataset& data, uint64_t seed, int64_t epoch);
// Weights of classes that make all count equally: samples / (classes that occur x samples of the
// class); 1 for a class that does not occur.
std::vector<float> balanced_weights(const Dataset& data, int64_t classes);

// 0 .. n - 1 in an order that is a function of (seed, stream).
std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t stream);

}  // namespace loom::core
