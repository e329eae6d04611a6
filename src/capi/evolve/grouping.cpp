// Groups of points: k-means, linkage, and the tensors of a checkpoint.
#include "capi/json_text.hpp"
#include "capi/options/options_as.hpp"
#include "loom/cluster.hpp"

using namespace loom;
using namespace loom::capi;

namespace {

// Merges as rows of (a, b, distance, points), the form of SciPy.
Status give_merges(loom_array** out, const Linkage& tree) {
  std::vector<double> rows;
  for (const LinkageMerge& m : tree.merges) {
    rows.insert(rows.end(), {static_cast<double>(m.a), static_cast<double>(m.b), m.distance,
                             static_cast<double>(m.points)});
  }
  LOOM_ASSIGN(Tensor merges, Tensor::copy(rows, {static_cast<int64_t>(tree.merges.size()), 4}));
  return give(out, std::move(merges));
}

// Reads the integer below `limit` in a column of row `i`.
Result<int64_t> index_of(double value, int64_t limit, size_t i) {
  if (value >= 0 && value < static_cast<double>(limit) && value == std::trunc(value))
    return static_cast<int64_t>(value);
  return invalid("merge " + std::to_string(i) + " names a group that is not there; give what " +
                 "loom_linkage() gave");
}

Result<Linkage> linkage_of(const loom_tensor* merges) {
  LOOM_ASSIGN(const Tensor given, tensor_of(merges, "merges"));
  if (given.rank() != 2 || given.shape()[1] != 4)
    return invalid("merges are " + shape_text(given.shape()) + "; give [n - 1, 4]");
  LOOM_ASSIGN(const Tensor wide, given.to(DType::float64));
  LOOM_ASSIGN(const std::span<const double> values, wide.values<double>());
  Linkage tree;
  tree.points = given.shape()[0] + 1;
  for (size_t i = 0; i < static_cast<size_t>(given.shape()[0]); ++i) {
    const auto row = values.subspan(i * 4, 4);
    const int64_t groups = tree.points + static_cast<int64_t>(i);
    LOOM_ASSIGN(const int64_t a, index_of(row[0], groups, i));
    LOOM_ASSIGN(const int64_t b, index_of(row[1], groups, i));
    LOOM_ASSIGN(const int64_t points, index_of(row[3], tree.points + 1, i));
    tree.merges.push_back({a, b, row[2], points});
  }
  return tree;
}

std::string groups_text(const std::vector<TensorGroup>& groups) {
  JsonText json;
  json.open('[');
  for (const TensorGroup& group : groups) {
    json.open('{');
    json.add("prefix", group.prefix);
    json.add("type", group.type);
    json.add("settings", group.settings);
    json.add("weights", group.weights);
    json.open('[', "tensors");
    for (const GroupedTensor& tensor : group.tensors) {
      json.open('{');
      json.add("name", tensor.name);
      json.add("role", tensor.role);
      json.open('[', "shape");
      for (const int64_t extent : tensor.shape) json.add("", extent);
      json.close(']');
      json.close('}');
    }
    json.close(']');
    json.close('}');
  }
  json.close(']');
  return json.text();
}

Status give_labels(loom_array** out, const std::vector<int64_t>& labels) {
  LOOM_ASSIGN(Tensor made, Tensor::copy(labels, {static_cast<int64_t>(labels.size())}));
  return give(out, std::move(made));
}

}  // namespace

extern "C" {

loom_status loom_kmeans(loom_engine* engine, const loom_tensor* points,
                        const loom_kmeans_options* options, loom_array** labels,
                        loom_array** centers, loom_kmeans_report* report) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(labels, "labels"));
    LOOM_TRY(clear(centers, "centers"));
    LOOM_ASSIGN(const loom_kmeans_options from, options_of(options, "loom_kmeans_options"));
    LOOM_ASSIGN(KMeansOptions how, options_as<KMeansOptions>(from.options));
    LOOM_ASSIGN(how.engine, engine_of(engine));
    LOOM_ASSIGN(const Tensor x, tensor_of(points, "points"));
    if (from.start != nullptr) {
      LOOM_ASSIGN(how.start, tensor_of(from.start, "start"));
    }
    how.progress = progress_of(from.progress, from.user);
    LOOM_ASSIGN(Clusters found, kmeans(x, how));
    loom_kmeans_report c_report{};
    c_report.inertia = found.inertia;
    c_report.rounds = found.rounds;
    c_report.converged = found.converged ? 1 : 0;
    if (report != nullptr) LOOM_TRY(give_report(report, c_report, "loom_kmeans_report"));
    LOOM_TRY(give_labels(labels, found.labels));
    const Status given = give(centers, std::move(found.centers));
    if (!given.ok()) {
      free_handle(*labels);
      *labels = nullptr;
    }
    return given;
  });
}

loom_status loom_silhouette(loom_engine* engine, const loom_tensor* points, const int64_t* labels,
                            int64_t count, loom_distance distance, double* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor x, tensor_of(points, "points"));
    LOOM_ASSIGN(const auto groups, list_of(labels, count, "labels"));
    LOOM_ASSIGN(const Distance how, enum_of<Distance>(distance, "distance"));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(*out, silhouette(x, {groups.begin(), groups.end()}, how, on));
    return {};
  });
}

loom_status loom_linkage(loom_engine* engine, const loom_tensor* points,
                         const loom_options* options, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor x, tensor_of(points, "points"));
    LOOM_ASSIGN(LinkageOptions how, options_as<LinkageOptions>(options));
    LOOM_ASSIGN(how.engine, engine_of(engine));
    LOOM_ASSIGN(const Linkage tree, linkage(x, how));
    return give_merges(out, tree);
  });
}

loom_status loom_linkage_of_distances(const loom_tensor* distances, const loom_options* options,
                                      loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor all, tensor_of(distances, "distances"));
    LOOM_ASSIGN(const LinkageOptions how, options_as<LinkageOptions>(options));
    LOOM_ASSIGN(const Linkage tree, linkage_of_distances(all, how));
    return give_merges(out, tree);
  });
}

loom_status loom_linkage_cut(const loom_tensor* merges, double threshold, int64_t groups,
                             loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Linkage tree, linkage_of(merges));
    return give_labels(out, groups > 0 ? tree.cut_into(groups) : tree.cut_at(threshold));
  });
}

loom_status loom_load_points(loom_engine* engine, const char* path, const char* array,
                             loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(Tensor points, load_points(file, text_or(array, "x"), on));
    return give(out, std::move(points));
  });
}

loom_status loom_group_tensors(const char* path, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const std::vector<TensorGroup> groups, group_tensors(file));
    return give_text(out, groups_text(groups));
  });
}

}  // extern "C"
