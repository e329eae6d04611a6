// loom bench gpu --variants: products of random numbers with every variant of their kernel, and
// whether the bits are those of the first.
#include <fmt/core.h>

#include <cstring>

#include "api/engine/gpu.hpp"
#include "base/text.hpp"

#include "gpu_lab.hpp"

namespace loom::core::cli {
namespace {

// Matrices of n x n, and the variants to compare.
struct Square {
  DeviceBuffer left, right, out;
  Tensor w;  // right, packed
};

Result<Square> square(const Lab& lab, int64_t n, DType dtype, bool packed) {
  Square s;
  const R16 geometry = r16_geometry(dtype, n, n);
  LOOM_ASSIGN(s.left, DeviceBuffer::create(lab.ops(), n * n * 4));
  LOOM_ASSIGN(s.right, DeviceBuffer::create(lab.ops(), packed ? geometry.bytes() : n * n * 4));
  LOOM_ASSIGN(s.out, DeviceBuffer::create(lab.ops(), n * n * 4));
  fill_random(s.left.matrix(n, n).f32_row(0), n * n, 1);
  if (packed) {
    fill_weights(s.right.memory.data(), geometry);
    s.w = r16_tensor(geometry, s.right.memory.data());
  } else {
    fill_random(s.right.matrix(n, n).f32_row(0), n * n, 2);
  }
  LOOM_TRY(upload(lab.ops(), s.left.memory));
  LOOM_TRY(upload(lab.ops(), s.right.memory));
  return s;
}

class Table {
 public:
  Table(Lab& lab, const VariantsFlags& flags) : lab_(lab), flags_(flags) {}

  Status product(const std::string& name);
  const Json& list() const { return list_; }

 private:
  Status packed(const std::string& name, DType dtype);
  template <class Args>
  Status measure(const std::string& name, const Square& s, const Args& args);
  template <class Args>
  Result<double> row(const std::string& product, const std::string& variant, const Square& s,
                     const Args& args);
  Result<bool> same_bits(const Square& s);

  Lab& lab_;
  const VariantsFlags& flags_;
  std::vector<std::byte> first_;  // that the first variant made
  Json list_ = Json::array();
};

Result<bool> Table::same_bits(const Square& s) {
  const MemoryRange range = range_of(s.out.memory);
  LOOM_TRY(lab_.ops().device->download({&range, 1}));
  if (first_.empty()) first_.assign(range.begin, range.begin + range.bytes);
  return std::memcmp(first_.data(), range.begin, first_.size()) == 0;
}

// TFLOP/s; 0 for a variant that the device does not run.
template <class Args>
Result<double> Table::row(const std::string& product, const std::string& variant, const Square& s,
                          const Args& args) {
  Status status = lab_.gpu().force_variant(variant);
  Result<double> seconds = 0.0, first = 0.0;
  if (status.ok()) first = lab_.run(args, 1);
  if (status.ok() && first.ok()) seconds = lab_.time(args);
  for (const auto* result : {&first, &seconds}) {
    if (status.ok() && !result->ok()) status = result->error();
  }
  if (!status.ok()) {
    if (!flags_.json) write_out(fmt::format("{}\n", status.error().message));
    return 0.0;
  }
  LOOM_ASSIGN(const bool same, same_bits(s));
  const auto n = static_cast<double>(flags_.size);
  const double rate = 2 * n * n * n / *seconds * 1e-12;
  list_.push(JsonObject()
                 .set("product", product)
                 .set("variant", variant)
                 .set("microseconds", *seconds * 1e6)
                 .set("teraflop_per_s", rate)
                 .set("first_run_ms", *first * 1e3)
                 .set("same_bits", same)
                 .value());
  if (!flags_.json) {
    write_out(fmt::format("{:42} {:11.1f} us {:9.3f} TFLOP/s  first run {:7.1f} ms  {}\n", variant,
                          *seconds * 1e6, rate, *first * 1e3, same ? "same bits" : "OTHER BITS"));
  }
  return rate;
}

template <class Args>
Status Table::measure(const std::string& name, const Square& s, const Args& args) {
  if (!flags_.json) write_out(name + "\n");
  first_.clear();
  std::string best;
  double most = 0;
  for (const std::string& variant : gpu_variants()) {
    LOOM_ASSIGN(const double rate, row(name, variant, s, args));
    if (rate > most) {
      most = rate;
      best = variant;
    }
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  }
  if (!flags_.json) write_out(fmt::format("best: {}, {:.3f} TFLOP/s\n\n", best, most));
  return {};
}

Status Table::packed(const std::string& name, DType dtype) {
  const int64_t n = flags_.size;
  LOOM_ASSIGN(const Square s, square(lab_, n, dtype, true));
  const Tensor left = s.left.matrix(n, n), out = s.out.matrix(n, n);
  const std::string title = fmt::format("{} {}^3 {}", name, n, dtype_name(dtype));
  if (name == "matmul") return measure(title, s, MatmulArgs{left, s.w, {}, out, {}});
  return measure(title, s, MatmulDxArgs{left, s.w, out});
}

Status Table::product(const std::string& name) {
  const int64_t n = flags_.size;
  if (name == "matmul" || name == "matmul_dx") {
    for (const std::string& type : split_list(flags_.dtypes)) {
      LOOM_ASSIGN(const DType dtype, parse_dtype(type));
      LOOM_TRY(packed(name, dtype));
    }
    return {};
  }
  if (name != "gemm" && name != "gemm_nt" && name != "gemm_tn") {
    return invalid(cat("unknown product '", printable(name),
                       "'; choose from gemm, gemm_nt, gemm_tn, matmul, matmul_dx"));
  }
  LOOM_ASSIGN(const Square s, square(lab_, n, DType::f32, false));
  return measure(fmt::format("{} {}^3 f32", name, n), s,
                 GemmArgs{s.left.matrix(n, n), s.right.matrix(n, n), s.out.matrix(n, n),
                          name == "gemm_tn", name == "gemm_nt"});
}

}  // namespace

int bench_variants(const Engine& engine, const VariantsFlags& flags) {
  Lab lab(engine, flags.seconds, ActivationMode::f32);
  if (!flags.json) write_out(engine.info().device + "\n");
  Table table(lab, flags);
  for (const std::string& name : split_list(flags.products)) {
    if (const Status status = table.product(name); !status.ok()) return fail(status.error());
  }
  if (flags.json) write_out(table.list().pretty() + "\n");
  return kDone;
}

}  // namespace loom::core::cli
