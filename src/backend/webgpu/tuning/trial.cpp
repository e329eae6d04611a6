#include "backend/webgpu/tuning/trial.hpp"

#include <chrono>

#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/kernels/products/products.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core::webgpu {
namespace {

using Kind = Product::Kind;

class Trial : public Shapes {
 public:
  Trial(Gpu& gpu, const Product& product) : gpu_(&gpu), product_(product) {}
  // Waits, so that frames and memory are not destroyed while in use.
  ~Trial() override { static_cast<void>(gpu_->wait()); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Status prepare();
  Result<double> run(const TileShape& shape);
  TileShape shape_for(const Product&, const TileShape&) override { return shape_; }

 private:
  Result<Tensor> matrix(int64_t rows, int64_t cols);
  Status describe();

  Gpu* gpu_;
  Product product_;
  TileShape shape_;
  Counts counts_;
  Memory memory_{*gpu_};
  std::unique_ptr<Profile> profile_;
  Frame frame_{*gpu_, memory_, counts_};
  std::vector<Buffer> host_;  // addresses only
  Tensor left_, right_, out_;
};

Result<Tensor> Trial::matrix(int64_t rows, int64_t cols) {
  LOOM_ASSIGN(Buffer buffer, Buffer::reserve(rows * cols * 4));
  host_.push_back(std::move(buffer));
  return f32_matrix(reinterpret_cast<float*>(host_.back().data()), rows, cols);
}

// As in a model: weights have a buffer of their own, all else is in one.
Status Trial::prepare() {
  const Product& p = product_;
  const bool a_transposed = p.kind == Kind::gemm && p.a_transposed;
  LOOM_ASSIGN(left_, a_transposed ? matrix(p.depth, p.rows) : matrix(p.rows, p.depth));
  LOOM_ASSIGN(out_, matrix(p.rows, p.cols));
  const bool by_rows = p.kind == Kind::matmul_dx || (p.kind == Kind::gemm && !p.b_transposed);
  const int64_t rows = by_rows ? p.depth : p.cols, cols = by_rows ? p.cols : p.depth;
  if (p.kind == Kind::gemm) {
    LOOM_ASSIGN(right_, matrix(rows, cols));
  } else {
    const R16 geometry = r16_geometry(p.dtype, rows, cols);
    LOOM_ASSIGN(Buffer weights, Buffer::reserve(geometry.bytes()));
    right_ = r16_tensor(geometry, weights.data());
    const MemoryRange range = range_of(weights);
    host_.push_back(std::move(weights));
    LOOM_TRY(memory_.attach({&range, 1}, MemoryUse::weights, false));
  }
  std::vector<MemoryRange> ranges{range_of(left_), range_of(out_)};
  if (p.kind == Kind::gemm) ranges.push_back(range_of(right_));
  LOOM_TRY(memory_.attach(ranges, MemoryUse::scratch, false));
  frame_.set_shapes(this);
  if (!gpu_->report().timestamps) return {};
  LOOM_ASSIGN(profile_, Profile::create(*gpu_));
  frame_.set_profile(profile_.get());
  return {};
}

Status Trial::describe() {
  switch (product_.kind) {
    case Kind::gemm:
      return kernels::gemm(
          frame_, {left_, right_, out_, product_.a_transposed, product_.b_transposed, false});
    case Kind::matmul: return matmul_tiles(frame_, {left_, right_, {}, out_, {}});
    case Kind::matmul_dx: return kernels::matmul_dx(frame_, {left_, right_, out_});
    case Kind::squared_distance: return kernels::squared_distance(frame_, {left_, right_, out_});
  }
  return {};
}

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Uses timestamps if the device has them, else a clock around a submission that is awaited.
Result<double> Trial::run(const TileShape& shape) {
  shape_ = shape;
  LOOM_TRY(gpu_->wait());
  const double start = now();
  Status status = describe();
  if (status.ok()) status = frame_.flush();
  if (status.ok() && profile_ == nullptr) status = gpu_->wait();
  if (!status.ok()) {
    frame_.drop();
    static_cast<void>(gpu_->check());  // the error belongs to this shape
    return status.error();
  }
  if (profile_ == nullptr) return now() - start;
  double microseconds = 0;
  for (const KernelTime& time : profile_->times()) microseconds += time.microseconds;
  profile_->clear();
  return microseconds * 1e-6;
}

}  // namespace

Result<Run> trial(Gpu& gpu, const Product& product) {
  const auto trial = std::make_shared<Trial>(gpu, product);
  LOOM_TRY(trial->prepare());
  return Run([trial](const TileShape& shape) { return trial->run(shape); });
}

}  // namespace loom::core::webgpu
