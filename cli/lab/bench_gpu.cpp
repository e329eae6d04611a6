// loom bench gpu: the performance of a GPU in the most important kernels. A list of equal commands
// is submitted at once, so a time includes no copies to or from the host.
#include <fmt/core.h>

#include <charconv>
#include <memory>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

#include "gpu_lab.hpp"
#include "lab.hpp"

namespace loom::core::cli {
namespace {

struct GpuFlags {
  EngineFlags engine;
  std::string gemm = "512,1024,2048,4096", gemv = "512,1024,2048,4096,8192,16384";
  std::string dtypes = "q4_0,q8_0,f16,f32";
  double seconds = 0.5;
  bool json = false, variants = false;
  std::string products = "gemm,matmul";
};

struct Row {
  std::string name;
  double seconds = 0, bytes = 0, flop = 0;
  std::string variant;
};

// The peaks of which rows report a share.
struct Peaks {
  double copy = 0;  // bytes per second, read and written
  double fma = 0;   // FLOP per second
};

Result<std::vector<int64_t>> sizes_of(const std::string& list, const char* option) {
  std::vector<int64_t> sizes;
  for (const std::string& word : split_list(list)) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (error != std::errc() || end != word.data() + word.size() || n < 16 || n > 32768) {
      return invalid(
          cat(option, ": '", printable(word), "' is not a size; give numbers from 16 to 32768"));
    }
    sizes.push_back(n);
  }
  return sizes;
}

// A buffer of random floats.
Result<DeviceBuffer> random_floats(const Lab& lab, int64_t count, uint32_t seed) {
  LOOM_ASSIGN(DeviceBuffer buffer, DeviceBuffer::create(lab.ops(), count * 4));
  fill_random(reinterpret_cast<float*>(buffer.memory.data()), count, seed);
  LOOM_TRY(upload(lab.ops(), buffer.memory));
  return buffer;
}

Result<Row> copy_row(Lab& lab) {
  constexpr int64_t kRows = 8192, kCols = 8192;
  LOOM_ASSIGN(const DeviceBuffer x, random_floats(lab, kRows * kCols, 1));
  LOOM_ASSIGN(const DeviceBuffer y, DeviceBuffer::create(lab.ops(), kRows * kCols * 4));
  LOOM_ASSIGN(const double seconds,
              lab.time(UnaryArgs{x.matrix(kRows, kCols), y.matrix(kRows, kCols)}));
  return Row{"copy of 256 MB", seconds, 2.0 * kRows * kCols * 4, 0, {}};
}

Result<Row> gemm_row(Lab& lab, int64_t n) {
  LOOM_ASSIGN(const DeviceBuffer a, random_floats(lab, n * n, 1));
  LOOM_ASSIGN(const DeviceBuffer b, random_floats(lab, n * n, 2));
  LOOM_ASSIGN(const DeviceBuffer y, DeviceBuffer::create(lab.ops(), n * n * 4));
  LOOM_ASSIGN(const double seconds,
              lab.time(GemmArgs{a.matrix(n, n), b.matrix(n, n), y.matrix(n, n)}));
  const auto size = static_cast<double>(n);
  return Row{fmt::format("gemm {}^3 f32", n), seconds, 0, 2 * size * size * size,
             lab.gpu().last_variant()};
}

// Small matrices would come from caches after the first run, so there are several, up to 256 MB in
// total, in turn.
Result<Row> gemv_row(Lab& lab, int64_t n, DType dtype) {
  constexpr int64_t kBytes = 256 << 20, kMax = 64, kDistinct = 64;
  const R16 geometry = r16_geometry(dtype, n, n);
  const int64_t copies = std::clamp<int64_t>(kBytes / geometry.bytes(), 1, kMax);
  LOOM_ASSIGN(const DeviceBuffer w,
              DeviceBuffer::create(lab.ops(), round_up(geometry.bytes(), 256) * copies));
  LOOM_ASSIGN(const DeviceBuffer x, random_floats(lab, n, 3));
  LOOM_ASSIGN(const DeviceBuffer y, DeviceBuffer::create(lab.ops(), n * 4));
  fill_weights(w.memory.data(), geometry, kDistinct);
  std::vector<MatmulArgs> turns;
  for (int64_t i = 0; i < copies; ++i) {
    std::byte* begin = w.memory.data() + i * round_up(geometry.bytes(), 256);
    if (i > 0) std::memcpy(begin, w.memory.data(), static_cast<size_t>(geometry.bytes()));
    turns.push_back(
        MatmulArgs{x.matrix(1, n), r16_tensor(geometry, begin), {}, y.matrix(1, n), {}});
  }
  LOOM_TRY(upload(lab.ops(), w.memory));
  LOOM_ASSIGN(const double seconds, lab.time(std::span<const MatmulArgs>(turns)));
  const auto size = static_cast<double>(n);
  return Row{fmt::format("gemv {}^2 {}", n, dtype_name(dtype)),
             seconds,
             static_cast<double>(geometry.bytes()),
             2 * size * size,
             {}};
}

void print_row(const Row& row, const Peaks& peaks) {
  std::string line = fmt::format("{:24} {:12.1f} us", row.name, row.seconds * 1e6);
  if (row.bytes > 0) {
    const double rate = row.bytes / row.seconds;
    line += fmt::format(" {:9.1f} GB/s {:6.1f} % of the copy", rate / 1e9, 100 * rate / peaks.copy);
  }
  if (row.flop > 0) {
    const double rate = row.flop / row.seconds;
    line += fmt::format(" {:9.1f} GFLOP/s {:5.1f} % of fma", rate / 1e9, 100 * rate / peaks.fma);
  }
  if (!row.variant.empty()) line += fmt::format("  by {}", row.variant);
  write_out(line + "\n");
}

Json row_json(const Row& row, const Peaks& peaks) {
  const double rate = row.bytes / row.seconds, flop = row.flop / row.seconds;
  return JsonObject()
      .set("name", row.name)
      .set("microseconds", row.seconds * 1e6)
      .set("gigabytes_per_s", rate / 1e9)
      .set("gigaflop_per_s", flop / 1e9)
      .set("share_of_copy", rate / peaks.copy)
      .set("share_of_fma", flop / peaks.fma)
      .set("variant", row.variant)
      .value();
}

// Measures row after row, and prints each when it is done.
class GpuBench {
 public:
  GpuBench(const GpuFlags& flags, const Engine& engine)
      : flags_(flags), lab_(engine, flags.seconds, engine.impl().activations) {}

  Status run(const std::vector<int64_t>& gemm, const std::vector<int64_t>& gemv,
             const std::vector<DType>& dtypes) {
    LOOM_ASSIGN(peaks_.fma, lab_.gpu().fma_rate(flags_.seconds));
    if (flags_.json) {
      list_.push(JsonObject()
                     .set("name", "fma f32")
                     .set("gigaflop_per_s", peaks_.fma / 1e9)
                     .set("share_of_fma", 1.0)
                     .value());
    } else {
      write_out(fmt::format("{:24} {:>12}    {:9.1f} GFLOP/s\n", "fma f32", "", peaks_.fma / 1e9));
    }
    LOOM_TRY(add(copy_row(lab_)));
    for (const int64_t n : gemm) LOOM_TRY(add(gemm_row(lab_, n)));
    for (const DType dtype : dtypes) {
      for (const int64_t n : gemv) LOOM_TRY(add(gemv_row(lab_, n, dtype)));
    }
    return {};
  }
  const Json& list() const { return list_; }

 private:
  Status add(const Result<Row>& row) {
    if (!row.ok()) return row.error();
    if (peaks_.copy == 0) peaks_.copy = row->bytes / row->seconds;
    if (flags_.json) {
      list_.push(row_json(*row, peaks_));
    } else {
      print_row(*row, peaks_);
    }
    return interrupted() ? Status(Error{Code::cancelled, "interrupted", {}, -1}) : Status{};
  }

  const GpuFlags& flags_;
  Lab lab_;
  Peaks peaks_;
  Json list_ = Json::array();
};

int run(GpuFlags f) {
  const Result<std::vector<int64_t>> gemm = sizes_of(f.gemm, "--gemm");
  if (!gemm.ok()) return fail(kUsage, gemm.error().message);
  const Result<std::vector<int64_t>> gemv = sizes_of(f.gemv, "--gemv");
  if (!gemv.ok()) return fail(kUsage, gemv.error().message);
  std::vector<DType> dtypes;
  for (const std::string& name : split_list(f.dtypes)) {
    const Result<DType> dtype = parse_dtype(name);
    if (!dtype.ok()) return fail(dtype.error());
    dtypes.push_back(*dtype);
  }
  f.engine.device = "gpu";
  const Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  if (f.variants) {
    const int64_t size = gemm->empty() ? 4096 : gemm->back();
    return bench_variants(*engine, {size, f.products, f.dtypes, f.seconds, f.json});
  }
  if (!f.json) write_out(engine->info().device + "\n");
  GpuBench bench(f, *engine);
  if (const Status status = bench.run(*gemm, *gemv, dtypes); !status.ok()) {
    return fail(status.error());
  }
  if (f.json) write_out(bench.list().pretty() + "\n");
  return kDone;
}

}  // namespace

double warm_up_seconds(const webgpu::Backend* gpu) {
  return gpu == nullptr || gpu->adapter().software ? 0 : 1;
}

Verb add_bench_gpu(Command app) {
  auto f = std::make_shared<GpuFlags>();
  const Command verb =
      app.find("bench").command("gpu",
                                "The rates of the GPU: multiply-adds, copy, matrix products, "
                                "matrices times a vector; of random\n"
                                "numbers, and medians of seven lists of each.");
  verb.examples(
      "  loom bench gpu\n"
      "  loom bench gpu --gemm 1024 --gemv 4096 --dtypes q4_0,ternary --json\n"
      "  loom bench gpu --gemm \"\" --gemv 4096,8192 --dtypes q4_k,q6_k --activations q8\n"
      "  loom bench gpu --variants --seconds 0.1");
  verb.option("--gemm", f->gemm,
              "Sizes of the square matrices of the products, a comma list; --variants has the last")
      .show_default();
  verb.option("--gemv", f->gemv, "Sizes of the square matrices that are multiplied by a vector")
      .show_default();
  verb.option("--dtypes", f->dtypes, "Number types of those matrices, a comma list").show_default();
  verb.option("--activations", f->engine.activations,
              "Type of that vector: f32, or q8: in int8 for integer types (default: f32)");
  verb.option("--seconds", f->seconds, "How long each kernel is measured")
      .range(0.001, 3600.0)
      .show_default();
  verb.flag("--variants", f->variants, "Measure products with every variant of their kernel");
  verb.option("--products", f->products,
              "Which, with --variants: gemm, gemm_nt, gemm_tn, matmul, matmul_dx; a comma list")
      .show_default();
  f->engine.add_device(verb);
  verb.flag("--json", f->json, "A JSON array instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli
