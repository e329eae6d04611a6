#include "loom/cluster.hpp"

#include <algorithm>
#include <iterator>

#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "convert/model_report.hpp"
#include "evolve/dna/points_file.hpp"
#include "evolve/dna/tensor_groups.hpp"
#include "evolve/groups/kmeans.hpp"
#include "evolve/groups/linkage.hpp"

namespace loom::core {
namespace {

Result<std::vector<double>> doubles_of(const loom::Tensor& tensor, std::string_view what) {
  if (tensor.dtype() != loom::DType::float32 && tensor.dtype() != loom::DType::float64)
    return invalid(
        cat(what, " of type ", loom::dtype_name(tensor.dtype()), ": give float32 or float64"));
  LOOM_ASSIGN(const loom::Tensor wide, tensor.to(loom::DType::float64));
  LOOM_ASSIGN(const std::span<const double> values, wide.values<double>());
  return std::vector<double>(values.begin(), values.end());
}

Result<Points> points_of(const loom::Tensor& tensor) {
  if (tensor.rank() < 1 || tensor.empty())
    return invalid(cat("points ", loom::shape_text(tensor.shape()), ": give [n, d]"));
  LOOM_ASSIGN(std::vector<double> values, doubles_of(tensor, "points"));
  const int64_t n = tensor.shape()[0];
  return make_points(n, tensor.size() / n, std::move(values));
}

// The triangle of all pairs as doubles.
Status check_pairs(int64_t n, const MemoryBudget& memory) {
  const uint64_t bytes = static_cast<uint64_t>(n) * static_cast<uint64_t>(n) / 2 * sizeof(double);
  return memory.check(bytes, cat("the distances of ", n, " points"), "linkage");
}

}  // namespace
}  // namespace loom::core

namespace loom {

Result<Tensor> load_points(const std::string& path, const std::string& array,
                           const std::optional<Engine>& engine) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(engine));
  LOOM_ASSIGN(const core::FilePoints points, core::read_points(path, array, on.impl().budget()));
  return Tensor::copy(points.values, {points.n, points.d});
}

Result<Clusters> kmeans(const Tensor& points, const KMeansOptions& options) {
  LOOM_ASSIGN(const core::Points from, core::points_of(points));
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(options.engine));
  core::KMeansSpec spec;
  spec.clusters = options.clusters;
  spec.seed = options.seed;
  spec.plus_plus = options.plus_plus;
  spec.most_rounds = options.most_rounds;
  spec.tolerance = options.tolerance;
  spec.restarts = options.restarts;
  spec.progress = options.progress;
  if (options.start) {
    LOOM_ASSIGN(spec.start, core::doubles_of(*options.start, "start"));
  }
  const std::lock_guard turn(on.impl().turn);
  LOOM_ASSIGN(core::KMeansGroups groups, core::group_by_means(from, spec, on.impl().pool));
  Clusters out;
  out.labels = std::move(groups.labels);
  LOOM_ASSIGN(
      out.centers,
      Tensor::copy(groups.centers, {static_cast<int64_t>(groups.centers.size()) / from.d, from.d}));
  out.inertia = groups.inertia;
  out.rounds = groups.rounds;
  out.converged = groups.converged;
  return out;
}

Result<double> silhouette(const Tensor& points, const std::vector<int64_t>& labels,
                          Distance distance, const std::optional<Engine>& engine) {
  LOOM_ASSIGN(const core::Points from, core::points_of(points));
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(engine));
  const std::lock_guard turn(on.impl().turn);
  return core::silhouette_of(from, labels, distance, on.impl().pool);
}

Result<Linkage> linkage(const Tensor& points, const LinkageOptions& options) {
  LOOM_ASSIGN(const core::Points from, core::points_of(points));
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(options.engine));
  LOOM_TRY(core::check_pairs(from.n, on.impl().budget()));
  const std::lock_guard turn(on.impl().turn);
  return core::link_groups(core::pair_distances(from, options.distance, on.impl().pool), from.n,
                           options.method);
}

Result<Linkage> linkage_of_distances(const Tensor& distances, const LinkageOptions& options) {
  if (distances.rank() != 2 || distances.empty() || distances.shape()[0] != distances.shape()[1])
    return core::invalid(core::cat("distances ", shape_text(distances.shape()),
                                   ": give [n, n], of all points to all"));
  LOOM_ASSIGN(const std::vector<double> all, core::doubles_of(distances, "distances"));
  const int64_t n = distances.shape()[0];
  std::vector<double> pairs;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double d = all[static_cast<size_t>(i * n + j)];
      const bool good =
          d >= 0 && d - d == 0 && (i != j || d == 0) && d == all[static_cast<size_t>(j * n + i)];
      if (!good)
        return core::invalid(core::cat("the distance of ", i, " and ", j,
                                       " must be finite, not negative, the same both ways, and 0 "
                                       "of a point to itself"));
      if (j > i) pairs.push_back(d);
    }
  }
  return core::link_groups(std::move(pairs), n, options.method);
}

std::vector<int64_t> Linkage::cut_at(double threshold) const {
  const auto past = std::find_if(merges.begin(), merges.end(), [=](const LinkageMerge& merge) {
    return !(merge.distance <= threshold);
  });
  return core::groups_after(*this, past - merges.begin());
}

std::vector<int64_t> Linkage::cut_into(int64_t groups) const {
  return core::groups_after(*this, points - std::clamp<int64_t>(groups, 1, points));
}

Result<std::vector<TensorGroup>> group_tensors(const std::string& path) {
  if (!core::file_exists(path))
    return core::make_error(Code::not_found, "no such file or folder", path);
  LOOM_ASSIGN(const auto file, core::open_tensor_file(path));
  return core::group_by_names(*file);
}

}  // namespace loom
