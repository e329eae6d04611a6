#include "learn/rules/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dtype/r16/r16.hpp"
#include "learn/step/step_builder.hpp"
#include "ops/recording/program.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {
namespace {

// Shares of a row's range that are tried; 1 first, so that it wins where nothing is gained.
constexpr float kShares[] = {1.0f,  0.97f, 0.94f, 0.91f, 0.88f, 0.85f, 0.82f,
                             0.78f, 0.74f, 0.7f,  0.65f, 0.6f,  0.55f, 0.5f};

// The input and the weight of an op that multiplies them; empty for others.
struct Product {
  Tensor x, w;
  bool convolution = false;
  ConvShape shape;
};
Product product_of(Command command) {
  Product p;
  with_args(command, [&](const auto& args) {
    using Args = std::decay_t<decltype(args)>;
    if constexpr (std::is_same_v<Args, MatmulArgs>) p = {args.x, args.w, false, {}};
    if constexpr (std::is_same_v<Args, ConvArgs>) p = {args.x, args.w, true, args.shape};
  });
  return p;
}

// The patch of an ungrouped convolution at output position `at` of one sample [C, in].
void patch(const ConvShape& s, const float* x, int64_t at, float* out) {
  const int64_t o[3] = {at / (s.out[1] * s.out[2]), at / s.out[2] % s.out[1], at % s.out[2]};
  for (int64_t c = 0; c < s.channels; ++c) {
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      const int64_t k[3] = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                            tap % s.kernel[2]};
      int64_t index = c;
      bool inside = true;
      for (int axis = 0; axis < 3; ++axis) {
        const int64_t i = o[axis] * s.stride[axis] + k[axis] * s.dilation[axis] - s.pad[axis];
        inside = inside && i >= 0 && i < s.in[axis];
        index = index * s.in[axis] + i;
      }
      *out++ = inside ? x[index] : 0.0f;
    }
  }
}

}  // namespace

RangeObserver::RangeObserver() = default;
RangeObserver::RangeObserver(RangeObserver&&) noexcept = default;
RangeObserver& RangeObserver::operator=(RangeObserver&&) noexcept = default;
RangeObserver::~RangeObserver() = default;

Result<RangeObserver> RangeObserver::create(const Network& network, const Ops& ops,
                                            ThreadPool& pool, bool carry_feedback) {
  if (!network.extra_inputs().empty())
    return unsupported(
        "ranges are taken from a data set, which has one input for each sample; this "
        "network takes more");
  RangeObserver o;
  o.batch_ = network.input()[0];
  o.ranges_.resize(network.params().size());
  Trace trace(ops.compute);
  LOOM_ASSIGN(o.feedback_, carried_feedback(network, carry_feedback, ops));
  std::vector<Tensor> read;  // the x of every reader
  TraceOptions options;
  options.feedback = tensors_of(o.feedback_);
  LOOM_ASSIGN(o.network_, trace_network(network, trace, options));
  for (size_t i = 0; i < trace.commands().size(); ++i) {
    const Product product = product_of(trace.commands()[i]);
    for (size_t p = 0; p < network.params().size() && !product.w.empty(); ++p) {
      const Param& param = network.params()[p];
      if (param.tensor.data != product.w.data) continue;
      if (product.convolution && product.shape.groups > 1) continue;
      const auto id = static_cast<int64_t>(o.readers_.size());
      trace.note_before(static_cast<int64_t>(i), product.x, id);
      size_t input = 0;
      while (input < read.size() && read[input].data != product.x.data) ++input;
      read.push_back(product.x);
      o.readers_.push_back({p, input, product.convolution, product.shape});
    }
  }
  if (options.feedback != nullptr) {
    Recorder last(trace);
    LOOM_TRY(record_feedback(o.network_, *options.feedback, last));
  }
  std::vector<Tensor*> pins = {&o.network_.x, &o.network_.y, &o.network_.step};
  LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, ops, pool));
  o.program_ = std::make_unique<Program>(std::move(program));
  return o;
}

Status RangeObserver::run(int64_t samples) {
  return program_->run(
      [&](int64_t id, const Tensor& x) { add(readers_[static_cast<size_t>(id)], x, samples); });
}

Status RangeObserver::visit(const Visit& see) {
  return program_->run([&](int64_t id, const Tensor& x) {
    const Reader& reader = readers_[static_cast<size_t>(id)];
    if (!reader.convolution) see(reader.param, reader.input, x);
  });
}

std::vector<int64_t> RangeObserver::inputs() const {
  std::vector<int64_t> of(ranges_.size(), -1);
  for (const Reader& reader : readers_) {
    if (!reader.convolution && of[reader.param] < 0)
      of[reader.param] = static_cast<int64_t>(reader.input);
  }
  return of;
}

void InputRange::thin_out(int64_t k) {
  for (int64_t i = 0; 2 * i < sampled; ++i) {
    std::copy_n(samples.data() + 2 * i * k, k, samples.data() + i * k);
  }
  sampled = (sampled + 1) / 2;
  stride *= 2;
}

void RangeObserver::add(const Reader& reader, const Tensor& x, int64_t samples) {
  InputRange& range = ranges_[reader.param];
  const int64_t rows = x.rows() * samples / batch_;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.f32() + r * x.row_stride;
    const auto [low, high] = std::minmax_element(row, row + x.cols());
    range.min = std::min(range.min, *low);
    range.max = std::max(range.max, *high);
    if (!reader.convolution) {
      range.add(x.cols(), [&](float* out) { std::copy_n(row, x.cols(), out); });
      continue;
    }
    const ConvShape& shape = reader.shape;
    for (int64_t at = 0; at < shape.out_positions(); ++at) {
      range.add(shape.patch(), [&](float* out) { patch(shape, row, at, out); });
    }
  }
}

namespace {

// Packs and unpacks a matrix in a number type.
class RoundTrip {
 public:
  static Result<RoundTrip> create(const Tensor& like, DType dtype, const Ops& ops,
                                  ThreadPool& pool) {
    RoundTrip r;
    const R16 geometry = r16_geometry(dtype, like.shape[0], like.shape[1]);
    LOOM_ASSIGN(r.packed_, Buffer::allocate(geometry.bytes()));
    LOOM_ASSIGN(r.plain_, Buffer::allocate(plain_bytes(DType::f32, like.shape)));
    LOOM_ASSIGN(r.source_, Buffer::allocate(plain_bytes(DType::f32, like.shape)));
    r.source = like;
    r.source.row_stride = like.cols();
    r.source.data = r.source_.data();
    r.result = r.source;
    r.result.data = r.plain_.data();
    r.recorder_ = std::make_unique<Recorder>(ops, pool, ActivationMode::f32);
    const Tensor packed = r16_tensor(geometry, r.packed_.data());
    LOOM_TRY(r.recorder_->pack({r.source, packed}));
    LOOM_TRY(r.recorder_->convert({packed, r.result}));
    return r;
  }
  Status run() { return recorder_->run(); }
  Tensor source, result;

 private:
  Buffer packed_, plain_, source_;
  std::unique_ptr<Recorder> recorder_;
};

float largest(const float* row, int64_t n) {
  float most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(row[i]));
  return most;
}

// Squares of products of matrix rows [N, K] with the sampled inputs, summed over the inputs.
class Power {
 public:
  static Result<Power> create(const InputRange& range, const Tensor& rows, const Ops& ops,
                              ThreadPool& pool) {
    Power p;
    p.rows_ = rows;
    if (range.sampled == 0) return p;
    LOOM_ASSIGN(p.memory_, Buffer::allocate(rows.rows() * range.sampled * 4));
    Tensor inputs = rows;
    inputs.shape = Shape{range.sampled, rows.cols()};
    inputs.data = reinterpret_cast<std::byte*>(const_cast<float*>(range.samples.data()));
    p.products_ = rows;
    p.products_.shape = Shape{rows.rows(), range.sampled};
    p.products_.row_stride = range.sampled;
    p.products_.data = p.memory_.data();
    p.recorder_ = std::make_unique<Recorder>(ops, pool, ActivationMode::f32);
    LOOM_TRY(p.recorder_->gemm({rows, inputs, p.products_, false, true, false}));
    return p;
  }
  // Per row of what `rows` holds now.
  Result<std::vector<double>> run() {
    if (recorder_ != nullptr) LOOM_TRY(recorder_->run());
    const Tensor& t = recorder_ != nullptr ? products_ : rows_;
    std::vector<double> sums(static_cast<size_t>(t.rows()), 0.0);
    for (int64_t r = 0; r < t.rows(); ++r) {
      const float* row = t.f32() + r * t.row_stride;
      for (int64_t i = 0; i < t.cols(); ++i) {
        sums[static_cast<size_t>(r)] += static_cast<double>(row[i]) * static_cast<double>(row[i]);
      }
    }
    return sums;
  }

 private:
  Buffer memory_;
  Tensor rows_, products_;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace

Result<ClipReport> clip_rows(const Tensor& master, DType dtype, const InputRange& range,
                             const Ops& ops, ThreadPool& pool) {
  const int64_t rows = master.rows(), cols = master.cols();
  if (static_cast<int64_t>(range.samples.size()) < range.sampled * cols) {
    return invalid("the inputs that were seen do not fit the matrix");
  }
  LOOM_ASSIGN(RoundTrip trip, RoundTrip::create(master, dtype, ops, pool));
  LOOM_ASSIGN(Power power, Power::create(range, trip.result, ops, pool));
  const auto clamp_row = [&](int64_t r, float limit, float* out) {
    const float* row = master.f32() + r * master.row_stride;
    for (int64_t c = 0; c < cols; ++c) out[c] = std::clamp(row[c], -limit, limit);
  };
  // trip.result, decoded, becomes the error.
  const auto subtract = [&](int64_t r) {
    const float* row = master.f32() + r * master.row_stride;
    float* error = trip.result.f32() + r * cols;
    for (int64_t c = 0; c < cols; ++c) error[c] = row[c] - error[c];
  };
  std::vector<float> limit(static_cast<size_t>(rows)), share(static_cast<size_t>(rows), 1.0f);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = master.f32() + r * master.row_stride;
    limit[static_cast<size_t>(r)] = largest(row, cols);
    std::copy_n(row, cols, trip.result.f32() + r * cols);
  }
  LOOM_ASSIGN(const std::vector<double> size, power.run());
  std::vector<double> plain, best;
  for (const float by : kShares) {
    for (int64_t r = 0; r < rows; ++r) {
      clamp_row(r, limit[static_cast<size_t>(r)] * by, trip.source.f32() + r * cols);
    }
    LOOM_TRY(trip.run());
    for (int64_t r = 0; r < rows; ++r) subtract(r);
    LOOM_ASSIGN(const std::vector<double> error, power.run());
    if (plain.empty()) plain = best = error;
    for (size_t r = 0; r < error.size(); ++r) {
      if (!(error[r] < best[r])) continue;
      best[r] = error[r];
      share[r] = by;
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float by = share[static_cast<size_t>(r)];
    if (by < 1.0f) {
      clamp_row(r, limit[static_cast<size_t>(r)] * by, master.f32() + r * master.row_stride);
    }
  }
  const auto total = [](const auto& all) { return std::accumulate(all.begin(), all.end(), 0.0); };
  const double whole = total(size);
  ClipReport report;
  report.plain = whole > 0 ? std::sqrt(total(plain) / whole) : 0.0;
  report.error = whole > 0 ? std::sqrt(total(best) / whole) : 0.0;
  report.kept = rows > 0 ? total(share) / static_cast<double>(rows) : 1.0;
  return report;
}

}  // namespace loom::core
