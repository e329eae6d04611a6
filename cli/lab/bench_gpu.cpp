// loom bench gpu: what the GPU reaches in the kernels that speed stands on. A list of equal
// commands is submitted at once and waited for, so a time holds no copies to and from the host.
#include <fmt/core.h>

#include <memory>

#include "gpu_lab.hpp"
#include "lab.hpp"

namespace loom::core::cli {
namespace {

struct GpuFlags {
  EngineFlags engine;
  int64_t gemm = 4096, gemv = 16384;
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

Result<Row> copy_row(Lab& lab) {
  constexpr int64_t kRows = 8192, kCols = 8192;
  LOOM_ASSIGN(const DeviceBuffer x, DeviceBuffer::create(lab.ops(), kRows * kCols * 4));
  LOOM_ASSIGN(const DeviceBuffer y, DeviceBuffer::create(lab.ops(), kRows * kCols * 4));
  LOOM_ASSIGN(const double seconds,
              lab.time(UnaryArgs{x.matrix(kRows, kCols), y.matrix(kRows, kCols)}));
  return Row{"copy of 256 MB", seconds, 2.0 * kRows * kCols * 4, 0};
}

Result<Row> gemm_row(Lab& lab, int64_t n) {
  LOOM_ASSIGN(const DeviceBuffer a, DeviceBuffer::create(lab.ops(), n * n * 4));
  LOOM_ASSIGN(const DeviceBuffer b, DeviceBuffer::create(lab.ops(), n * n * 4));
  LOOM_ASSIGN(const DeviceBuffer y, DeviceBuffer::create(lab.ops(), n * n * 4));
  LOOM_ASSIGN(const double seconds,
              lab.time(GemmArgs{a.matrix(n, n), b.matrix(n, n), y.matrix(n, n)}));
  const auto size = static_cast<double>(n);
  return Row{fmt::format("gemm {}^3 f32", n), seconds, 0, 2 * size * size * size,
             lab.gpu().last_variant()};
}

Result<Row> gemv_row(Lab& lab, int64_t n, DType dtype) {
  const R16 geometry = r16_geometry(dtype, n, n);
  LOOM_ASSIGN(const DeviceBuffer w, DeviceBuffer::create(lab.ops(), geometry.bytes()));
  LOOM_ASSIGN(const DeviceBuffer x, DeviceBuffer::create(lab.ops(), n * 4));
  LOOM_ASSIGN(const DeviceBuffer y, DeviceBuffer::create(lab.ops(), n * 4));
  LOOM_ASSIGN(const double seconds,
              lab.time(MatmulArgs{
                  x.matrix(1, n), r16_tensor(geometry, w.memory.data()), {}, y.matrix(1, n)}));
  const auto size = static_cast<double>(n);
  return Row{fmt::format("gemv {}^2 {}", n, dtype_name(dtype)), seconds,
             static_cast<double>(geometry.bytes()), 2 * size * size};
}

Result<std::vector<Row>> measure(const GpuFlags& f, const Engine& engine) {
  Lab lab(engine, f.seconds);
  std::vector<Row> rows;
  const auto add = [&](Result<Row> row) -> Status {
    if (!row.ok()) return row.error();
    rows.push_back(*row);
    return interrupted() ? Status(Error{Code::cancelled, "interrupted", {}, -1}) : Status{};
  };
  LOOM_TRY(add(copy_row(lab)));
  LOOM_TRY(add(gemm_row(lab, f.gemm)));
  for (const std::string& name : split_list(f.dtypes)) {
    LOOM_ASSIGN(const DType dtype, parse_dtype(name));
    LOOM_TRY(add(gemv_row(lab, f.gemv, dtype)));
  }
  return rows;
}

int run(GpuFlags f) {
  f.engine.device = "gpu";
  const Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  if (f.variants) {
    return bench_variants(*engine, {f.gemm, f.products, f.dtypes, f.seconds, f.json});
  }
  const Result<std::vector<Row>> rows = measure(f, *engine);
  if (!rows.ok()) return fail(rows.error());
  const double copy = (*rows)[0].bytes / (*rows)[0].seconds;
  Json list = Json::array();
  if (!f.json) write_out(engine->info().device + "\n");
  for (const Row& row : *rows) {
    const double rate = row.bytes / row.seconds;
    if (f.json) {
      list.push(JsonObject()
                    .set("name", row.name)
                    .set("microseconds", row.seconds * 1e6)
                    .set("gigabytes_per_s", rate / 1e9)
                    .set("gigaflop_per_s", row.flop / row.seconds / 1e9)
                    .set("share_of_copy", rate / copy)
                    .set("variant", row.variant)
                    .value());
      continue;
    }
    std::string line = fmt::format("{:24} {:12.1f} us", row.name, row.seconds * 1e6);
    if (row.bytes > 0) {
      line += fmt::format(" {:9.1f} GB/s {:6.1f} % of the copy", rate / 1e9, 100 * rate / copy);
    }
    if (row.flop > 0) line += fmt::format(" {:9.1f} GFLOP/s", row.flop / row.seconds / 1e9);
    if (!row.variant.empty()) line += fmt::format("  by {}", row.variant);
    write_out(line + "\n");
  }
  if (f.json) write_out(list.pretty() + "\n");
  return kDone;
}

}  // namespace

Verb add_bench_gpu(Command app) {
  auto f = std::make_shared<GpuFlags>();
  const Command verb = app.find("bench").command(
      "gpu", "What the GPU reaches: copy, matrix product, matrix times vector.");
  verb.examples(
      "  loom bench gpu\n"
      "  loom bench gpu --gemm 1024 --gemv 4096 --dtypes q4_0,ternary --json\n"
      "  loom bench gpu --variants --seconds 0.1");
  verb.option("--gemm", f->gemm, "Size of the square matrices of the product")
      .range(16, 32768)
      .show_default();
  verb.option("--gemv", f->gemv, "Size of the square matrix that is multiplied by a vector")
      .range(16, 32768)
      .show_default();
  verb.option("--dtypes", f->dtypes, "Number types of that matrix, a comma list").show_default();
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
