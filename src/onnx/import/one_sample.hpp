// Files whose first axis is not a batch, and refusals for this reason. Room-private; see
// one_sample.cpp.
#pragma once

#include <string>
#include <string_view>

#include "onnx/file/model.hpp"

namespace loom::core {

// Why an importer refuses a file, if that says how its first axis can be read.
enum class Refusal {
  other,
  along_batch,    // a recurrence whose steps are the batch of the input
  not_the_batch,  // an output whose first axis holds no samples
  size_of_batch,  // values that depend on how many samples there are
  mixes_samples,  // an output that depends on several samples at once
};

// Both importers refuse it in these words.
constexpr std::string_view kAlongBatch =
    "runs along the batch axis of the input; export with batch_first=True";

// The note of a file that takes one sample at a time.
constexpr std::string_view kOneByOne =
    "the file fixes the batch at 1: samples are computed one by one";

// The model with its open batch fixed at 1: every axis that has the name of the first input's.
OnnxModel with_one_sample(const OnnxModel& model, const std::string& batch);

// The model with an axis of 1 before the axes of each input and output: it takes one sample at a
// time, and a sample is all that the file takes. Inputs and outputs keep their names.
OnnxModel as_one_sample(const OnnxModel& model);

}  // namespace loom::core
