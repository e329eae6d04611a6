// Grouping: points by k-means or by linkage, how good groups are, and the tensors of a checkpoint
// by the layers that their names tell. Distances and sums are in double, points in ascending order,
// so results depend on points and seed alone.
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

// Points [n, d], float32 or float64, from .csv (all columns that are numbers), .npy, .npz
// (`array`), .safetensors or IDX, each also as .gz; further axes are one. Errors: not_found,
// bad_file (naming line and column), out_of_memory.
LOOM_API Result<Tensor> load_points(const std::string& path, const std::string& array = "x",
                                    const std::optional<Engine>& engine = {});

struct Clusters {
  std::vector<int64_t> labels;  // of each point: its nearest centre, the first of equal ones
  Tensor centers;               // [clusters, d], float64
  double inertia = 0;           // sum of the squared distances to them
  int64_t rounds = 0;
  bool converged = false;
};

// Lloyd's algorithm (1982), Euclidean. A centre without points moves to the point that is farthest
// from its own. Errors: invalid_argument (no points, a value that is not finite, clusters below 1).
LOOM_API Result<Clusters> kmeans(const Tensor& points, const KMeansOptions& options = {});

// Mean over all points of (b - a) / max(a, b): a is the mean distance to the others of its cluster,
// b the least mean distance to another one (Rousseeuw, 1987). A point alone counts 0; so does all
// of one cluster. Errors: invalid_argument (as many labels as points, none negative).
LOOM_API Result<double> silhouette(const Tensor& points, const std::vector<int64_t>& labels,
                                   Distance distance = Distance::euclidean,
                                   const std::optional<Engine>& engine = {});

// Groups a < b become one of `points` points. Points are groups 0 to n - 1, the i-th merge makes
// group n + i.
struct LinkageMerge {
  int64_t a = 0, b = 0;
  double distance = 0;
  int64_t points = 0;
};

struct LOOM_API Linkage {
  int64_t points = 0;
  std::vector<LinkageMerge> merges;  // n - 1, by distance ascending

  // Labels of all points: groups that are merged at `threshold` or nearer, or as many as `groups`
  // (1 to n; others are cut to that). Numbered by their first points.
  std::vector<int64_t> cut_at(double threshold) const;
  std::vector<int64_t> cut_into(int64_t groups) const;
};

// Of points [n, d]. Takes n^2 / 2 distances in memory. Errors: invalid_argument, out_of_memory.
LOOM_API Result<Linkage> linkage(const Tensor& points, const LinkageOptions& options = {});
// Of distances [n, n], symmetric, zeros on the diagonal; options.distance is not asked.
LOOM_API Result<Linkage> linkage_of_distances(const Tensor& distances,
                                              const LinkageOptions& options = {});

// ---- tensors of a checkpoint --------------------------------------------------------------------

struct GroupedTensor {
  std::string name;  // as the file calls it
  std::string role;  // what it is in its layer: "q", "weight"
  std::vector<int64_t> shape;
};

// Tensors that are one layer.
struct TensorGroup {
  std::string prefix;    // "model.layers.3.self_attn"; of one tensor its name
  std::string type;      // "MultiHeadAttention"; "": no layer that is known
  std::string settings;  // sizes that follow from the shapes: "d_model 96, heads 3, head_dim 32"
  std::vector<GroupedTensor> tensors;
  int64_t weights = 0;
};

// Of a file with named tensors: safetensors, a checkpoint folder, GGUF, .entity. By names and
// shapes alone: no configuration is needed, nothing is opened as a model. In the natural order of
// the names. Errors: those of opening.
LOOM_API Result<std::vector<TensorGroup>> group_tensors(const std::string& path);

}  // namespace loom
#endif
