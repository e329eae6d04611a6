// Second moments of the inputs of every matrix of a language model while it reads a text, in
// windows. They are computed for a few inputs at a time, so memory does not grow with the layers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/quantize/importance.hpp"
#include "learn/rules/calibrate.hpp"
#include "llm/model_source.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {

struct TextOptions {
  int64_t window = 128;  // tokens with shared context
  int64_t windows = 16;  // from the start of the text
  std::function<bool(int64_t done, int64_t total)> progress;
};

class TextMoments {
 public:
  // Loads the model as stored. `ops` and `pool` must outlive the result. Errors: unsupported (an
  // encoder, no tokenizer), invalid_argument (a text shorter than a window).
  static Result<TextMoments> create(const ModelSource& source, const std::string& text,
                                    const TextOptions& options, const Ops& ops, ThreadPool& pool);

  // Sums of x x^T of the inputs of a matrix, [cols][cols], and how many inputs there were. Null if
  // no product reads the matrix. The pointer is valid until the next call. Reads the text once for
  // every kBudget bytes of sums that are asked for in ascending order.
  Result<const std::vector<float>*> moments(const std::string& path);
  int64_t rows() const { return windows_ * window_; }
  // Means of x^2 of every column, for every matrix.
  Result<Importance> importance();

  // The logits of the first `windows` windows, [tokens][vocabulary], with the weights as they are.
  Status logits(int64_t windows, const std::function<void(const float* row, int64_t n)>& see);
  Network& network() { return *network_; }

 private:
  static constexpr int64_t kBudget = int64_t{1} << 30;
  Status read(size_t first);
  Status feed(int64_t window);

  std::unique_ptr<Network> network_;
  std::unique_ptr<RangeObserver> observer_;
  std::vector<TokenId> ids_;
  std::vector<int64_t> inputs_;           // by parameter; -1 without one
  std::vector<std::vector<float>> sums_;  // by input; empty: not computed
  int64_t window_ = 0, windows_ = 0;
  TextOptions options_;
  const Ops* ops_ = nullptr;
  ThreadPool* pool_ = nullptr;
};

}  // namespace loom::core
