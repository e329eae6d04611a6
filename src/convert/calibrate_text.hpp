// Calibrating a language model on a text before it is quantized: what reaches every matrix is
// observed in windows of the text, and rows are narrowed to the range that costs their products
// least (learn/calibrate.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bridge/weight_source.hpp"
#include "learn/calibrate.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

struct CalibrationOptions {
  int64_t window = 128;  // tokens that see each other
  int64_t windows = 16;  // of the text, from its beginning
  std::function<bool(int64_t done, int64_t total)> progress;
};

class TextCalibration {
 public:
  // Runs the model as it is stored. Errors: unsupported (no tokenizer), invalid_argument (a text
  // shorter than a window). `ops` and `pool` must outlive it.
  static Result<TextCalibration> observe(const ModelSource& source, const std::string& text,
                                         const CalibrationOptions& options, const Ops& ops,
                                         ThreadPool& pool);
  // PackPolicy::adjust: narrows rows of `param` for `dtype`. Types of 16 bits and more, and
  // matrices that nothing was observed of, stay as they are.
  Status adjust(const Param& param, DType dtype, int64_t rows, float* values);
  // Of every matrix that was narrowed, chunk by chunk.
  const std::vector<ClipReport>& reports() const { return reports_; }

 private:
  std::unique_ptr<Network> network_;
  std::vector<InputRange> ranges_;
  std::vector<ClipReport> reports_;
  const Ops* ops_ = nullptr;
  ThreadPool* pool_ = nullptr;
};

}  // namespace loom::core
