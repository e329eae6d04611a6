#include "convert/calibrate_text.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "llm/decoder.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {

Result<TextCalibration> TextCalibration::observe(const ModelSource& source, const std::string& text,
                                                 const CalibrationOptions& options, const Ops& ops,
                                                 ThreadPool& pool) {
  LOOM_ASSIGN(const std::optional<TokenizerSpec> spec, tokenizer_spec(source));
  if (source.encoder)
    return unsupported("an encoder cannot be calibrated; leave the calibration text out",
                       source.path);
  if (!spec)
    return unsupported("has no tokenizer for a calibration text; leave the calibration text out",
                       source.path);
  LOOM_ASSIGN(const Tokenizer tokenizer, Tokenizer::make(*spec));
  LOOM_ASSIGN(const std::vector<TokenId> ids, tokenizer.encode(text));
  const int64_t window = std::min(options.window, source.config.max_positions);
  const int64_t windows = std::min(options.windows, static_cast<int64_t>(ids.size()) / window);
  if (windows < 1)
    return invalid(cat("the calibration text has ", ids.size(), " tokens, a window takes ", window,
                       "; give a longer one"));
  TextCalibration c;
  c.ops_ = &ops;
  c.pool_ = &pool;
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(source.config));
  LOOM_ASSIGN(Network network, Network::finalize(grid, Shape{1, window}));
  c.network_ = std::make_unique<Network>(std::move(network));
  for (size_t i = 0; i < c.network_->params().size(); ++i) {
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, c.network_->params()[i]));
    LOOM_TRY(load_weight(*c.network_, static_cast<int>(i), weight.stored, weight, pool));
  }
  LOOM_ASSIGN(RangeObserver observer, RangeObserver::create(*c.network_, ops, pool));
  for (int64_t w = 0; w < windows; ++w) {
    if (options.progress && !options.progress(w, windows))
      return make_error(Code::cancelled, "calibration was stopped");
    std::copy_n(ids.begin() + w * window, window, observer.x().i32());
    LOOM_TRY(observer.run(1));
  }
  c.ranges_ = observer.ranges();
  // Only shapes and paths are needed from here on.
  for (size_t i = 0; i < c.network_->params().size(); ++i) {
    Param& param = c.network_->param(static_cast<int>(i));
    param.memory = Buffer();
    param.tensor = Tensor{};
  }
  return c;
}

Status TextCalibration::adjust(const Param& param, DType dtype, int64_t rows, float* values) {
  const int index = network_->find_param(param.path);
  if (index < 0 || !param.spec.matrix() || dtype_info(dtype).bits >= 16) return {};
  const InputRange& range = ranges_[static_cast<size_t>(index)];
  if (range.sampled == 0) return {};
  const Tensor master = f32_matrix(values, rows, param.spec.shape[1]);
  LOOM_ASSIGN(ClipReport report, clip_rows(master, dtype, range, *ops_, *pool_));
  report.path = param.path;
  reports_.push_back(std::move(report));
  return {};
}

}  // namespace loom::core
