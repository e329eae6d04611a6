// Clustering of points by k-means or by linkage, quality of clusters, and grouping of a
// checkpoint's tensors into layers by their names. Distances and sums are in double, over points in
// ascending order, so results depend on points and seed only.
//
//   Clusters groups = kmeans(points, {.clusters = 3, .seed = 7}).or_exit();    // points: [n, d]
//   double quality = silhouette(points, groups.labels).or_exit();
//   Linkage tree = linkage(points, {.method = LinkageMethod::average}).or_exit();
//   std::vector<int64_t> labels = tree.cut_at(0.5);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/cluster_kinds.hpp"
#include "loom/cluster_options.hpp"
#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/result.hpp"
#include "loom/tensor.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Points [n, d], float32 or float64, from .csv (all numeric columns), .npy, .npz (`array`),
// .safetensors or IDX, each also as .gz. Axes after the first are flattened. Errors: not_found,
// bad_file (naming line and column), out_of_memory.
LOOM_API Result<Tensor> load_points(const std::string& path, const std::string& array = "x",
                                    const std::optional<Engine>& engine = {});

struct Clusters {
  std::vector<int64_t> labels;  // nearest centre of each point, the first of equal ones
  Tensor centers;               // [clusters, d], float64
  double inertia = 0;           // sum of the squared distances to them
  int64_t rounds = 0;
  bool converged = false;
};

// Lloyd's algorithm (1982), Euclidean. A centre without points moves to the point that is farthest
// from its own centre. Errors: invalid_argument (no points, a value that is not finite, clusters
// below 1).
LOOM_API Result<Clusters> kmeans(const Tensor& points, const KMeansOptions& options = {});

// Mean over all points of (b - a) / max(a, b): a is the mean distance to the others of its cluster,
// b the least mean distance to another cluster (Rousseeuw, 1987). A point alone in its cluster
// counts 0. A single cluster gives 0. Errors: invalid_argument (one label per point is required,
// none negative).
LOOM_API Result<double> silhouette(const Tensor& points, const std::vector<int64_t>& labels,
                                   Distance distance = Distance::euclidean,
                                   const std::optional<Engine>& engine = {});

// Groups a < b become one group of `points` points. Groups 0 to n - 1 are the points; the i-th
// merge makes group n + i.
struct LinkageMerge {
  int64_t a = 0, b = 0;
  double distance = 0;
  int64_t points = 0;
};

struct LOOM_API Linkage {
  int64_t points = 0;
  std::vector<LinkageMerge> merges;  // n - 1, by distance ascending

  // Labels of all points, numbered by their first points. cut_at() joins groups that merge at
  // `threshold` or below; cut_into() makes `groups` groups (clamped to 1..n).
  std::vector<int64_t> cut_at(double threshold) const;
  std::vector<int64_t> cut_into(int64_t groups) const;
};

// Clusters points [n, d]. Takes n^2 / 2 distances in memory. Errors: invalid_argument,
// out_of_memory.
LOOM_API Result<Linkage> linkage(const Tensor& points, const LinkageOptions& options = {});
// Clusters by distances [n, n], symmetric with a zero diagonal. options.distance is ignored.
LOOM_API Result<Linkage> linkage_of_distances(const Tensor& distances,
                                              const LinkageOptions& options = {});

// ---- tensors of a checkpoint --------------------------------------------------------------------

struct GroupedTensor {
  std::string name;  // as the file calls it
  std::string role;  // its role in the layer: "q", "weight"
  std::vector<int64_t> shape;
};

// Tensors of one layer.
struct TensorGroup {
  std::string prefix;    // "model.layers.3.self_attn"; the name of a single tensor
  std::string type;      // "MultiHeadAttention"; empty if the layer is unknown
  std::string settings;  // sizes that follow from the shapes: "d_model 96, heads 3, head_dim 32"
  std::vector<GroupedTensor> tensors;
  int64_t weights = 0;
};

// Groups the tensors of a file: safetensors, a checkpoint folder, GGUF, .entity. It uses names and
// shapes only: it needs no configuration and opens no model. Groups are in the natural order of
// their names. Errors: those of opening.
LOOM_API Result<std::vector<TensorGroup>> group_tensors(const std::string& path);

}  // namespace loom
#endif
