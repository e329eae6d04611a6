#include "backend/webgpu/tuning/variants.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/webgpu/wgsl/weights.hpp"
#include "base/text.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core::webgpu {
namespace {

// The order in which a search tries them. The fastest on an H200 come first (2026-11-22, `loom
// bench gpu --variants`, 20 to 31 TFLOP/s in f32). The others cover hardware with other limits.
constexpr TileShape kVariants[] = {
    {16, 16, 2, 2, 16, 2, 16}, {16, 16, 2, 2, 16, 2, 8}, {16, 16, 2, 2, 16, 1, 16},
    {16, 16, 2, 2, 16, 1, 8},  {8, 8, 2, 2, 8, 2, 8},    {16, 16, 1, 1, 16, 1, 8},
    {16, 16, 2, 1, 16, 1, 8},  {16, 16, 2, 1, 32, 0, 8}, {16, 16, 2, 2, 8, 2, 8},
    {16, 16, 1, 1, 16, 2, 8},  {8, 16, 2, 2, 8, 2, 8},   {16, 16, 2, 2, 8, 1, 8},
    {8, 16, 2, 2, 16, 2, 8},   {8, 8, 2, 2, 16, 1, 8},   {8, 8, 1, 1, 16, 1, 8},
    {16, 16, 2, 2, 32, 0, 16}, {16, 16, 2, 1, 16, 2, 8}, {8, 16, 2, 2, 16, 1, 8},
    {8, 8, 1, 1, 16, 2, 8},    {8, 8, 2, 2, 16, 0, 8},   {16, 16, 2, 2, 16, 0, 16},
    {8, 16, 2, 2, 16, 0, 8},   {16, 16, 1, 1, 16, 0, 8}, {8, 8, 1, 1, 16, 0, 8},
    {8, 8, 1, 1, 8, 2, 8},     {8, 16, 2, 2, 32, 1, 8},
};

// Products below this many terms take some microseconds with any tiles.
constexpr double kLarge = 1 << 27;
// Limits of a class's trial run: it takes half a millisecond and more on a large GPU.
constexpr int64_t kMaxSide = 4096, kMaxTerms = int64_t{1} << 33, kMinDepth = 512;

int64_t rounded(int64_t n) {
  return int64_t{1} << std::lround(std::log2(static_cast<double>(std::max<int64_t>(n, 1))));
}

// The family of number types that are decoded alike. A trial product has the first type of its
// family.
std::string_view family_of(DType dtype) {
  if (dtype == DType::f32) return "f32";
  return reads_rows(dtype) ? "wide" : "groups";
}

std::string_view kind_of(const Product& product) {
  switch (product.kind) {
    case Product::Kind::gemm: break;
    case Product::Kind::matmul: return "matmul";
    case Product::Kind::matmul_dx: return "matmul_dx";
    case Product::Kind::squared_distance: return "squared_distance";
  }
  if (product.a_transposed) return product.b_transposed ? "gemm_tt" : "gemm_tn";
  return product.b_transposed ? "gemm_nt" : "gemm";
}

// The best of three runs after one warm-up; `runs` counts all. Nothing if a run fails or the first
// takes longer than `enough`.
std::optional<double> min_of(const Run& run, const TileShape& shape, double enough, double& runs) {
  double least = HUGE_VAL;
  for (int i = 0; i < 4; ++i) {
    const Result<double> seconds = run(shape);
    if (!seconds.ok()) return {};
    runs += *seconds;
    if (i == 0 && *seconds > enough) return {};
    if (i > 0) least = std::min(least, *seconds);
  }
  return least;
}

}  // namespace

std::span<const TileShape> tile_variants() {
  return kVariants;
}

std::string name_of(const TileShape& s) {
  return cat(s.down, "x", s.across, " of ", 4 * s.quads_down, "x", 4 * s.quads_across, ", k ",
             s.step, ", ahead ", s.ahead, ", band ", s.band);
}

const TileShape* find_variant(std::string_view name) {
  const auto* found = std::find_if(std::begin(kVariants), std::end(kVariants),
                                   [&](const TileShape& shape) { return name_of(shape) == name; });
  return found == std::end(kVariants) ? nullptr : found;
}

bool fits(const TileShape& shape, const AdapterReport& adapter) {
  return shape.bytes() <= adapter.max_workgroup_memory &&
         shape.lanes() <= adapter.max_workgroup_size;
}

std::optional<Product> class_of(const Product& product) {
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  if (real(product.rows) * real(product.cols) * real(product.depth) < kLarge) return {};
  Product its = product;
  its.rows = std::min(rounded(product.rows), kMaxSide);
  its.cols = std::min(rounded(product.cols), kMaxSide);
  const int64_t depth = std::max(kMaxTerms / (its.rows * its.cols), kMinDepth);
  its.depth = std::min(rounded(product.depth), depth);
  return its;
}

std::string name_of(const Product& p) {
  return cat(kind_of(p), " ", family_of(p.dtype), " ", p.rows, "x", p.cols, "x", p.depth);
}

std::optional<TileShape> search(std::span<const TileShape> candidates, const Run& run,
                                const Clock& clock) {
  const double start = clock();
  double runs = 0, best = 0;
  std::optional<TileShape> fastest;
  for (const TileShape& shape : candidates) {
    const double enough = fastest.has_value() ? 2 * best : HUGE_VAL;
    if (const std::optional<double> least = min_of(run, shape, enough, runs)) {
      if (!fastest.has_value() || *least < best) {
        best = *least;
        fastest = shape;
      }
    }
    if (runs > kSearchRuns || clock() - start > kSearchTime) break;
  }
  return fastest;
}

Tuner::Tuner(const AdapterReport& adapter, Tuning tuning, Prepare prepare, Clock clock)
    : adapter_(&adapter), tuning_(tuning), prepare_(std::move(prepare)), clock_(std::move(clock)) {}

TileShape Tuner::shape_for(const Product& product, const TileShape& rule) {
  const TileShape shape = chosen(product, rule);
  last_ = shape;
  return shape;
}

TileShape Tuner::chosen(const Product& product, const TileShape& rule) {
  if (forced_.has_value()) return *forced_;
  if (tuning_ == Tuning::off) return rule;
  const std::optional<Product> its = class_of(product);
  if (!its.has_value()) return rule;
  const std::string name = name_of(*its);
  if (const auto found = chosen_.find(name); found != chosen_.end()) {
    return found->second.value_or(rule);
  }
  if (adapter_->software && tuning_ != Tuning::force) return rule;
  const std::optional<TileShape> shape = searched(*its);
  chosen_[name] = shape;
  if (shape.has_value() && on_choice_) on_choice_();
  return shape.value_or(rule);
}

std::optional<TileShape> Tuner::searched(const Product& product) {
  const Result<Run> run = prepare_(product);
  if (!run.ok()) return {};
  std::vector<TileShape> candidates{tile_plan(product.rows, product.cols, product.depth).shape};
  for (const TileShape& shape : kVariants) {
    if (fits(shape, *adapter_) && shape != candidates[0]) candidates.push_back(shape);
  }
  return search(candidates, *run, clock_);
}

std::vector<Choice> Tuner::choices() const {
  std::vector<Choice> all;
  for (const auto& [product, shape] : chosen_) {
    if (shape.has_value()) all.push_back({product, name_of(*shape)});
  }
  return all;
}

void Tuner::choose(std::span<const Choice> choices) {
  for (const Choice& choice : choices) {
    const TileShape* shape = find_variant(choice.variant);
    if (shape != nullptr && fits(*shape, *adapter_)) chosen_[choice.product] = *shape;
  }
}

}  // namespace loom::core::webgpu
