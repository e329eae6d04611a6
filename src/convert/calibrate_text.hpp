// Calibrates a language model on a text before quantization. It observes the inputs of every matrix
// in windows of the text. It narrows rows to the range with the least error of their products
// (learn/rules/calibrate.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bridge/weight_source.hpp"
#include "learn/rules/calibrate.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

struct CalibrationOptions {
  int64_t window = 128;  // tokens with shared context
  int64_t windows = 16;  // from the start of the text
  std::function<bool(int64_t done, int64_t total)> progress;
};

class TextCalibration {
 public:
  // Runs the model as stored. `ops` and `pool` must outlive it. Errors: unsupported (no tokenizer),
  // invalid_argument (a text shorter than a window).
  static Result<TextCalibration> observe(const ModelSource& source, const std::string& text,
                                         const CalibrationOptions& options, const Ops& ops,
                                         ThreadPool& pool);
  // PackPolicy::adjust: narrows rows of `param` for `dtype`. Types of 16 bits and more, and
  // matrices without observations, stay unchanged.
  Status adjust(const Param& param, DType dtype, int64_t rows, float* values);
  // One report per narrowed matrix and chunk.
  const std::vector<ClipReport>& reports() const { return reports_; }

 private:
  std::unique_ptr<Network> network_;
  std::vector<InputRange> ranges_;
  std::vector<ClipReport> reports_;
  const Ops* ops_ = nullptr;
  ThreadPool* pool_ = nullptr;
};

}  // namespace loom::core
