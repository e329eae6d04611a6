// loom cluster: groups points, models by their DNA, or tensors by their layers.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "../plots/svg.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

struct ClusterFlags {
  EngineFlags engine;
  MemoryFlags memory;
  std::vector<std::string> inputs;
  OptionFlags means, tree;  // KMeansOptions, LinkageOptions but the method
  bool force = false;
  std::string by = "points", method, array = "x", out, svg;
  std::string mode = "functional";
  int64_t k = 0;
  double threshold = -1;
  bool json = false, quiet = false;
};

// Points or models with their groups.
struct Grouped {
  std::vector<std::string> names;  // of models; empty for numbered points
  std::vector<int64_t> labels;
  std::optional<Clusters> means;
  std::optional<Linkage> tree;
  std::optional<double> silhouette;
};

Error cluster_error(std::string message) {
  return Error{Code::invalid_argument, std::move(message), {}, -1};
}

std::vector<int64_t> cut_tree(const ClusterFlags& f, const Linkage& tree) {
  return f.k > 0 ? tree.cut_into(f.k) : tree.cut_at(f.threshold);
}

Status check_cut(const ClusterFlags& f) {
  if ((f.k > 0) == (f.threshold >= 0))
    return cluster_error("give --k, how many groups, or --threshold, how near they are merged");
  return {};
}

Result<Grouped> group_points(const ClusterFlags& f, const Engine& engine) {
  if (f.inputs.size() != 1 || f.inputs[0] == "-")
    return cluster_error("--by points takes one file, not standard input");
  LinkageOptions how{.engine = engine};
  LOOM_TRY(f.tree.read(how));
  LOOM_ASSIGN(const Tensor points, load_points(f.inputs[0], f.array, engine));
  Grouped out;
  if (f.method.empty() || f.method == "kmeans") {
    if (f.k < 1) return cluster_error("k-means needs --k, how many groups");
    if (how.distance != Distance::euclidean)
      return cluster_error("k-means is Euclidean; choose another --method");
    Progress bar("grouping", "restarts", f.quiet);
    KMeansOptions options;
    LOOM_TRY(f.means.read(options));
    options.clusters = f.k;
    options.engine = engine;
    options.progress = [&](int64_t done, int64_t total) {
      bar.update(done, total);
      return !interrupted();
    };
    LOOM_ASSIGN(out.means, kmeans(points, options));
    out.labels = out.means->labels;
  } else {
    LOOM_TRY(check_cut(f));
    LOOM_ASSIGN(how.method, parse_linkage_method(f.method));
    LOOM_ASSIGN(out.tree, linkage(points, how));
    out.labels = cut_tree(f, *out.tree);
  }
  // All pairs: for more points this would take longer than clustering.
  constexpr int64_t kMaxPoints = 20000;
  if (static_cast<int64_t>(out.labels.size()) <= kMaxPoints) {
    LOOM_ASSIGN(out.silhouette, silhouette(points, out.labels, how.distance, engine));
  }
  return out;
}

// Distances 1 - overlap of all pairs.
Result<std::vector<double>> model_distances(const ClusterFlags& f, const Engine& engine) {
  const size_t n = f.inputs.size();
  DnaOptions options{.engine = engine};
  LOOM_ASSIGN(options.mode, parse_dna_mode(f.mode));
  options.progress = [](uint64_t, uint64_t) { return !interrupted(); };
  Progress bar("comparing", "pairs", f.quiet);
  std::vector<double> out(n * n, 0.0);
  int64_t done = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      LOOM_ASSIGN(const DnaComparison dna, compare_dna(f.inputs[i], f.inputs[j], options));
      // A cell without a counterpart has similarity 0.
      const double apart = std::max(0.0, 1 - dna.weighted_overlap * dna.coverage);
      out[i * n + j] = out[j * n + i] = apart;
      bar.update(++done, static_cast<int64_t>(n * (n - 1) / 2));
    }
  }
  return out;
}

Status draw_models(const ClusterFlags& f, const std::vector<double>& distances) {
  if (f.svg.empty()) return {};
  HeatMap map;
  map.title = fmt::format("DNA of {} models, {}", f.inputs.size(), f.mode);
  for (const std::string& name : f.inputs) map.rows.push_back(printable(name, 40));
  map.columns = map.rows;
  for (const double d : distances) map.values.push_back(1 - d);
  return write_file(f.svg, heat_map_svg(map));
}

Result<Grouped> group_models(const ClusterFlags& f, const Engine& engine) {
  if (f.inputs.size() < 2) return cluster_error("--by models takes two models or more");
  LOOM_TRY(check_cut(f));
  LinkageOptions options{.engine = engine};
  LOOM_ASSIGN(options.method,
              parse_linkage_method(f.method.empty() ? "average" : std::string_view(f.method)));
  LOOM_ASSIGN(const std::vector<double> distances, model_distances(f, engine));
  const auto n = static_cast<int64_t>(f.inputs.size());
  LOOM_ASSIGN(const Tensor all, Tensor::copy(distances, {n, n}));
  Grouped out;
  LOOM_ASSIGN(out.tree, linkage_of_distances(all, options));
  out.labels = cut_tree(f, *out.tree);
  out.names = f.inputs;
  LOOM_TRY(draw_models(f, distances));
  return out;
}

Json labels_json(const std::vector<int64_t>& labels) {
  Json list = Json::array();
  for (const int64_t label : labels) list.push(Json::integer(label));
  return list;
}

std::string grouped_json(const Grouped& g) {
  JsonObject out;
  out.set("labels", labels_json(g.labels));
  if (g.silhouette) out.set("silhouette", *g.silhouette);
  if (g.means)
    out.set("inertia", g.means->inertia)
        .set("rounds", g.means->rounds)
        .set("converged", g.means->converged);
  if (g.tree) {
    Json merges = Json::array();
    for (const LinkageMerge& m : g.tree->merges)
      merges.push(Json::array_of({Json::integer(m.a), Json::integer(m.b), Json::real(m.distance),
                                  Json::integer(m.points)}));
    out.set("merges", merges);
  }
  return out.value().text() + "\n";
}

std::string grouped_csv(const Grouped& g) {
  std::string text = g.names.empty() ? "point,group\n" : "model,group\n";
  for (size_t i = 0; i < g.labels.size(); ++i) {
    std::string name = g.names.empty() ? fmt::format("{}", i) : g.names[i];
    if (name.find_first_of(",\"\n\r") != std::string::npos)
      name = "\"" + printable(name, 4096) + "\"";
    text += fmt::format("{},{}\n", name, g.labels[i]);
  }
  return text;
}

// A summary on stderr; stdout has the labels.
void note_groups(const ClusterFlags& f, const Grouped& g) {
  if (f.quiet) return;
  const int64_t groups = g.labels.empty() ? 0 : 1 + *std::ranges::max_element(g.labels);
  std::string text = fmt::format("{} {} in {} groups", g.labels.size(),
                                 g.names.empty() ? "points" : "models", groups);
  if (g.silhouette) text += fmt::format(", silhouette {:.4f}", *g.silhouette);
  if (g.means)
    text += fmt::format(", inertia {:.6g} after {} rounds", g.means->inertia, g.means->rounds);
  note(text);
}

int print_tensor_groups(const ClusterFlags& f) {
  if (f.inputs.size() != 1) return fail(kUsage, "--by tensors takes one file or folder");
  const Result<std::vector<TensorGroup>> groups = group_tensors(f.inputs[0]);
  if (!groups.ok()) return fail(groups.error());
  Json list = Json::array();
  for (const TensorGroup& group : *groups) {
    const std::string type = group.type.empty() ? "-" : group.type;
    if (!f.json) {
      write_line(fmt::format("{:<36} {:<20} {:>12}  {}", group.prefix, type, group.weights,
                             group.settings));
      continue;
    }
    std::vector<std::string> names;
    for (const GroupedTensor& tensor : group.tensors) names.push_back(tensor.name);
    JsonObject out;
    out.set("prefix", group.prefix)
        .set("type", group.type)
        .set("settings", group.settings)
        .set("weights", group.weights)
        .set("tensors", names);
    list.push(out.value());
  }
  if (f.json) write_out(list.text() + "\n");
  return kDone;
}

int run(const ClusterFlags& f) {
  Outputs outputs(f.force);
  for (const std::string& input : f.inputs) outputs.input("INPUT", input);
  const Status writable = outputs.text("-o", f.out, {".csv", ".json"}, "the groups")
                              .file("--svg", f.svg, {".svg"}, "the distances of models as SVG")
                              .check();
  if (!writable.ok()) return fail(writable.error());
  if (f.by == "tensors") return print_tensor_groups(f);
  if (f.by != "points" && f.by != "models")
    return fail(kUsage, fmt::format("--by {}: choose points, models or tensors", printable(f.by)));
  if (!f.svg.empty() && f.by == "points") return fail(kUsage, "--svg is for --by models");
  const Result<Engine> engine = f.engine.create(f.memory);
  if (!engine.ok()) return fail(engine.error());
  const Result<Grouped> grouped =
      f.by == "points" ? group_points(f, *engine) : group_models(f, *engine);
  if (!grouped.ok())
    return grouped.error().code == Code::cancelled ? fail_interrupted() : fail(grouped.error());
  note_groups(f, *grouped);
  const std::string text =
      f.json || f.out.ends_with(".json") ? grouped_json(*grouped) : grouped_csv(*grouped);
  const Status written = write_text(f.out.empty() ? "-" : f.out, text);
  return written.ok() ? kDone : fail(written.error());
}

}  // namespace

Verb add_cluster(Command app) {
  auto f = std::make_shared<ClusterFlags>();
  const Command verb = app.command("cluster", "Group points, models or tensors.");
  verb.examples(
      "  loom cluster examples/data/fruit.csv --k 4\n"
      "  loom cluster points.npz --method average --threshold 0.5 -o groups.csv\n"
      "  loom cluster a.entity b.entity c.entity --by models --k 2 --svg family.svg\n"
      "  loom cluster model.safetensors --by tensors");
  verb.option("INPUT", f->inputs,
              "points: a CSV, NPY, NPZ, IDX (also .gz) or safetensors file; models: two or more; "
              "tensors: a checkpoint")
      .required();
  verb.option("--by", f->by, "Items that are grouped: points, models, tensors").show_default();
  verb.option("--k", f->k, "How many groups").range(1, 1 << 24);
  verb.option("--threshold", f->threshold, "Linkage: groups that are at most so far are merged")
      .range(0.0, 1e300);
  verb.option("--method", f->method,
              "kmeans, single, complete, average (default: kmeans for points, average for models)");
  f->tree.add(verb, list_options(LinkageOptions()), {"method"});
  verb.option("--mode", f->mode, "Models: how their DNA is compared, see loom dna").show_default();
  f->means.add(verb, list_options(KMeansOptions()), {"k"});
  verb.option("--x", f->array, "Name of the points in an NPZ or safetensors file").show_default();
  verb.option("-o,--output", f->out, "Where groups go: .csv or .json (default: CSV on stdout)");
  verb.option("--svg", f->svg, "Models: draw how alike each is with each");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "JSON instead of CSV or text");
  verb.flag("--quiet", f->quiet, "No progress, no notes");
  f->engine.add_lanes(verb);
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
