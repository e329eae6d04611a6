// Files whose first axis is not a batch. Room-private; see one_sample.cpp.
#pragma once

#include <string>
#include <string_view>

#include "onnx/file/model.hpp"

namespace loom::core {

// The refusal of a recurrence whose steps are the batch of the input.
constexpr std::string_view kAlongBatch = "runs along the batch axis of the input";

// The refusal of an output whose first axis holds no samples.
constexpr std::string_view kNotTheBatch = "whose first axis is not the batch";

// The refusal of values that depend on how many samples there are.
constexpr std::string_view kSizeOfBatch = "computes with the size of the batch";

// The note of a file that takes one sample at a time.
constexpr std::string_view kOneByOne =
    "the file fixes the batch at 1: samples are computed one by one";

// The model with an axis of 1 before the axes of each input and output: it takes one sample at a
// time, and a sample is all that the file takes. Inputs and outputs keep their names.
OnnxModel as_one_sample(const OnnxModel& model);

}  // namespace loom::core
