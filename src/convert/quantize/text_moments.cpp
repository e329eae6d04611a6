#include "convert/quantize/text_moments.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "llm/decoder.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

// Adds x^T x to [cols][cols].
class Adder {
 public:
  Adder(const Ops& ops, ThreadPool& pool) : ops_(ops), pool_(pool) {}
  Status add(const std::vector<float>& x, int64_t cols, std::vector<float>& sums) {
    const auto rows = static_cast<int64_t>(x.size()) / cols;
    const Tensor from = f32_matrix(const_cast<float*>(x.data()), rows, cols);
    Recorder recorder(ops_, pool_, ActivationMode::f32);
    LOOM_TRY(recorder.gemm({from, from, f32_matrix(sums.data(), cols, cols), true, false, true}));
    return recorder.run();
  }

 private:
  const Ops& ops_;
  ThreadPool& pool_;
};

void append_rows(const Tensor& x, std::vector<float>& to) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    const float* row = x.f32() + r * x.row_stride;
    to.insert(to.end(), row, row + x.cols());
  }
}

}  // namespace

Result<TextMoments> TextMoments::create(const ModelSource& source, const std::string& text,
                                        const TextOptions& options, const Ops& ops,
                                        ThreadPool& pool) {
  LOOM_ASSIGN(const std::optional<TokenizerSpec> spec, tokenizer_spec(source));
  if (source.encoder)
    return unsupported("an encoder cannot be calibrated; leave the calibration text out",
                       source.path);
  if (!spec)
    return unsupported("has no tokenizer for a calibration text; leave the calibration text out",
                       source.path);
  LOOM_ASSIGN(const Tokenizer tokenizer, Tokenizer::make(*spec));
  TextMoments m;
  LOOM_ASSIGN(m.ids_, tokenizer.encode(text));
  m.window_ = std::min(options.window, source.config.max_positions);
  m.windows_ = std::min(options.windows, static_cast<int64_t>(m.ids_.size()) / m.window_);
  if (m.windows_ < 1)
    return invalid(cat("the calibration text has ", m.ids_.size(), " tokens, a window takes ",
                       m.window_, "; give a longer one"));
  m.options_ = options;
  m.ops_ = &ops;
  m.pool_ = &pool;
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(source.config));
  LOOM_ASSIGN(Network network, Network::finalize(grid, Shape{1, m.window_}));
  m.network_ = std::make_unique<Network>(std::move(network));
  for (size_t i = 0; i < m.network_->params().size(); ++i) {
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, m.network_->params()[i]));
    LOOM_TRY(load_weight(*m.network_, static_cast<int>(i), weight.stored, weight, pool));
  }
  LOOM_ASSIGN(RangeObserver observer, RangeObserver::create(*m.network_, ops, pool));
  m.observer_ = std::make_unique<RangeObserver>(std::move(observer));
  m.inputs_ = m.observer_->inputs();
  m.sums_.resize(m.inputs_.size());
  return m;
}

Status TextMoments::feed(int64_t window) {
  std::copy_n(ids_.begin() + window * window_, window_, observer_->x().i32());
  return {};
}

// Replaces all sums by those of parameter `first` and of those after it that fit the budget.
Status TextMoments::read(size_t first) {
  std::vector<std::vector<float>> rows(sums_.size());
  for (std::vector<float>& sums : sums_) sums = {};
  int64_t bytes = 0;
  for (size_t p = first; p < inputs_.size(); ++p) {
    if (inputs_[p] < 0) continue;
    std::vector<float>& sums = sums_[static_cast<size_t>(inputs_[p])];
    const int64_t cols = network_->params()[p].spec.shape[1];
    const int64_t needs = cols * cols * static_cast<int64_t>(sizeof(float));
    if (!sums.empty()) continue;
    if (bytes > 0 && bytes + needs > kBudget) break;
    bytes += needs;
    sums.resize(static_cast<size_t>(cols * cols));
  }
  Adder adder(*ops_, *pool_);
  for (int64_t w = 0; w < windows_; ++w) {
    if (options_.progress && !options_.progress(w, windows_))
      return make_error(Code::cancelled, "calibration was stopped");
    LOOM_TRY(feed(w));
    LOOM_TRY(observer_->visit([&](size_t param, size_t input, const Tensor& x) {
      if (static_cast<size_t>(inputs_[param]) != input || sums_[input].empty()) return;
      if (rows[input].empty()) append_rows(x, rows[input]);
    }));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].empty()) continue;
      const auto cols = static_cast<int64_t>(rows[i].size()) / window_;
      LOOM_TRY(adder.add(rows[i], cols, sums_[i]));
      rows[i].clear();
    }
  }
  return {};
}

Result<const std::vector<float>*> TextMoments::moments(const std::string& path) {
  const int index = network_->find_param(path);
  const int64_t input = index < 0 ? -1 : inputs_[static_cast<size_t>(index)];
  const std::vector<float>* none = nullptr;
  if (input < 0) return none;
  const std::vector<float>& sums = sums_[static_cast<size_t>(input)];
  if (sums.empty()) LOOM_TRY(read(static_cast<size_t>(index)));
  return &sums;
}

Result<Importance> TextMoments::importance() {
  Importance out;
  out.rows = rows();
  out.windows = windows_;
  for (const Param& param : network_->params()) {
    LOOM_ASSIGN(const std::vector<float>* sums, moments(param.path));
    if (sums == nullptr) continue;
    const int64_t cols = param.spec.shape[1];
    std::vector<float>& means = out.means[param.path];
    for (int64_t k = 0; k < cols; ++k)
      means.push_back((*sums)[static_cast<size_t>(k * cols + k)] / static_cast<float>(rows()));
  }
  return out;
}

Status TextMoments::logits(int64_t windows,
                           const std::function<void(const float* row, int64_t n)>& see) {
  for (int64_t w = 0; w < std::min(windows, windows_); ++w) {
    LOOM_TRY(feed(w));
    LOOM_TRY(observer_->visit([](size_t, size_t, const Tensor&) {}));
    const Tensor& y = observer_->y();
    for (int64_t r = 0; r < y.rows(); ++r) see(y.f32() + r * y.row_stride, y.cols());
  }
  return {};
}

}  // namespace loom::core
