// loom ensemble: combines several networks by voting, and finds complementary pairs.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "../plots/learning.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"

namespace loom::cli {
namespace {

struct EnsembleFlags {
  EngineFlags engine;
  MemoryFlags memory;
  DataFlags data;
  std::vector<std::string> models;
  bool force = false;
  std::string weights, method = "soft", fit, fit_labels, judge, out;
  double coverage = 0;
  uint64_t seed = 1;
  bool json = false, quiet = false;
};

Error ensemble_error(std::string message, std::string where = {}) {
  return Error{Code::invalid_argument, std::move(message), std::move(where), -1};
}

// All members' answers to one set of samples.
struct Answers {
  std::vector<Tensor> shares;               // probabilities [n, classes], a model each
  std::vector<std::vector<int64_t>> votes;  // the likeliest class
  std::vector<int64_t> labels;              // empty if the data have none
  std::vector<Mask> right;
};

struct Ensemble {
  std::vector<Network> members;
  std::vector<double> weights;
  Answers answers;
  std::vector<std::pair<std::string, std::vector<int64_t>>> together;  // by method
};

Result<std::vector<double>> member_weights(const EnsembleFlags& f) {
  std::vector<double> out;
  for (const std::string& part : split_list(f.weights)) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size())
      return ensemble_error(fmt::format("--weights: '{}' is not a number", printable(part)));
    out.push_back(value);
  }
  return out;
}

// Column names of a network's inputs; its targets may have any name.
std::vector<std::string> input_columns(const NetworkInfo& info) {
  std::vector<std::string> names = info.columns;
  names.resize(std::min(names.size(), static_cast<size_t>(element_count(info.input))));
  return names;
}

Result<std::vector<Network>> load_members(const EnsembleFlags& f, const Engine& engine) {
  std::vector<Network> members;
  for (const std::string& path : f.models) {
    LOOM_ASSIGN(Network net, Network::load(path, {.engine = engine}));
    const NetworkInfo info = net.info();
    if (info.fresh) return ensemble_error("is a description without weights; train it first", path);
    if (info.output.size() != 1 || info.output[0] < 2 || info.heads.size() > 1)
      return ensemble_error("gives no scores of classes, one row for each sample", path);
    if (!members.empty()) {
      const NetworkInfo first = members[0].info();
      if (info.output != first.output)
        return ensemble_error(
            fmt::format("has {} classes, {} has {}", info.output[0], f.models[0], first.output[0]),
            path);
      const auto order = match_classes(first.classes, info.classes);
      if (!order.ok()) return ensemble_error(order.error().message + " as " + f.models[0], path);
      if (first.classes.empty() != info.classes.empty() && !f.quiet && !f.json)
        note((info.classes.empty() ? path : f.models[0]) +
             ": has no names of classes; classes are matched by number");
      const std::vector<std::string> mine = input_columns(first), others = input_columns(info);
      if (!mine.empty() && !others.empty() && mine != others)
        return ensemble_error("takes other columns, or in another order, than " + f.models[0] +
                                  "; train both on tables of one order",
                              path);
      if (element_count(info.input) != element_count(first.input))
        return ensemble_error(fmt::format("takes samples {}, {} takes {}", shape_text(info.input),
                                          f.models[0], shape_text(first.input)),
                              path);
    }
    members.push_back(std::move(net));
  }
  return members;
}

// In pieces, for progress and Ctrl-C. Column i is the network's class order[i]; empty order: class
// i.
Result<Tensor> shares_of(const Network& net, const Tensor& x, const std::vector<int64_t>& order,
                         Progress& bar, int64_t done, int64_t total) {
  constexpr int64_t kBatch = 256;
  const int64_t n = x.shape()[0], classes = net.info().output[0];
  const int64_t batch = std::min(kBatch, n);
  Shape shape = net.info().input;
  LOOM_ASSIGN(Session session, net.session({.max_batch = batch}));
  LOOM_ASSIGN(Tensor out, Tensor::zeros({n, classes}));
  LOOM_ASSIGN(const std::span<float> to, out.mutable_values<float>());
  shape.insert(shape.begin(), 0);
  for (int64_t first = 0; first < n; first += batch) {
    if (interrupted()) return Error{Code::cancelled, "stopped", {}, -1};
    shape[0] = std::min(batch, n - first);
    LOOM_ASSIGN(const Tensor piece, x.slice(first, shape[0]));
    LOOM_ASSIGN(const Tensor inputs, piece.reshape(shape));
    LOOM_ASSIGN(const Tensor outputs, session.run(inputs));
    LOOM_ASSIGN(const Tensor shares, net.probabilities(outputs));
    LOOM_ASSIGN(const std::span<const float> values, shares.values<float>());
    std::copy(values.begin(), values.end(), to.begin() + first * classes);
    for (int64_t row = 0; row < shape[0]; ++row) {
      for (size_t c = 0; c < order.size(); ++c)
        to[static_cast<size_t>((first + row) * classes) + c] =
            values[static_cast<size_t>(row * classes + order[c])];
    }
    bar.update(done + first + shape[0], total);
  }
  return out;
}

Result<std::vector<int64_t>> labels_of(const Dataset& data, const std::string& path) {
  std::vector<int64_t> out;
  if (!data.has_labels()) return ensemble_error("has no class labels to score with", path);
  LOOM_ASSIGN(const Tensor wide, data.y().to(DType::int64));
  LOOM_ASSIGN(const std::span<const int64_t> values, wide.values<int64_t>());
  if (static_cast<int64_t>(values.size()) != data.samples())
    return ensemble_error("has several labels for each sample", path);
  out.assign(values.begin(), values.end());
  return out;
}

Result<Answers> ask_members(const std::vector<Network>& members, const DataFlags& from,
                            bool quiet) {
  LOOM_ASSIGN(const DatasetOptions how, from.options(true));
  LOOM_ASSIGN(const Dataset data, read_samples(from.path, members[0], how));
  Answers out;
  LOOM_ASSIGN(out.labels, labels_of(data, from.path));
  Progress bar("asking", "samples", quiet);
  const Tensor x = data.x();
  const auto models = static_cast<int64_t>(members.size());
  for (const Network& net : members) {
    const auto done = static_cast<int64_t>(out.shares.size()) * data.samples();
    LOOM_ASSIGN(const std::vector<int64_t> order,
                match_classes(members[0].info().classes, net.info().classes));
    LOOM_ASSIGN(const Tensor shares, shares_of(net, x, order, bar, done, models * data.samples()));
    LOOM_ASSIGN(const std::vector<int64_t> votes, best_classes(shares));
    Mask right;
    for (size_t i = 0; i < votes.size(); ++i) right.push_back(votes[i] == out.labels[i]);
    out.shares.push_back(shares);
    out.votes.push_back(votes);
    out.right.push_back(std::move(right));
  }
  return out;
}

double share_right(const std::vector<int64_t>& votes, const std::vector<int64_t>& labels) {
  int64_t right = 0;
  for (size_t i = 0; i < votes.size(); ++i) right += votes[i] == labels[i] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(std::max<size_t>(votes.size(), 1));
}

Status add_judge(const EnsembleFlags& f, const Engine& engine, Ensemble& e) {
  if (f.fit.empty()) return {};
  DataFlags learning = f.data;
  learning.path = f.fit;
  learning.labels = f.fit_labels;
  LOOM_ASSIGN(const Answers known, ask_members(e.members, learning, f.quiet));
  StackOptions options;
  options.seed = f.seed;
  options.engine = engine;
  LOOM_ASSIGN(const Network judge, stack(known.shares, known.labels, options));
  LOOM_ASSIGN(const Tensor inputs, stack_inputs(e.answers.shares));
  LOOM_ASSIGN(const Tensor scores, judge.predict(inputs));
  LOOM_ASSIGN(std::vector<int64_t> votes, best_classes(scores));
  e.together.emplace_back("stack", std::move(votes));
  return f.judge.empty() ? Status() : judge.save(f.judge);
}

Result<Ensemble> ask_together(const EnsembleFlags& f, const Engine& engine) {
  Ensemble e;
  LOOM_ASSIGN(e.weights, member_weights(f));
  LOOM_ASSIGN(e.members, load_members(f, engine));
  LOOM_ASSIGN(e.answers, ask_members(e.members, f.data, f.quiet));
  LOOM_ASSIGN(std::vector<int64_t> majority, majority_vote(e.answers.votes, e.weights));
  e.together.emplace_back("majority", std::move(majority));
  LOOM_ASSIGN(const Tensor mean, soft_vote(e.answers.shares, e.weights));
  LOOM_ASSIGN(std::vector<int64_t> soft, best_classes(mean));
  e.together.emplace_back("soft", std::move(soft));
  LOOM_TRY(add_judge(f, engine, e));
  return e;
}

Status print_ensemble(const EnsembleFlags& f, const Ensemble& e) {
  LOOM_ASSIGN(const std::vector<ComplementaryPair> pairs,
              complementary_pairs(e.answers.right, f.coverage));
  LOOM_ASSIGN(const Cover cover, greedy_cover(e.answers.right));
  const auto name = [&](int64_t m) { return f.models[static_cast<size_t>(m)]; };
  if (f.json) {
    Json members = Json::array(), votes = Json::object(), couples = Json::array(),
         order = Json::array();
    for (size_t m = 0; m < e.members.size(); ++m) {
      JsonObject one;
      one.set("model", f.models[m])
          .set("accuracy", share_right(e.answers.votes[m], e.answers.labels));
      members.push(one.value());
    }
    for (const auto& [method, labels] : e.together)
      votes.add(method, Json::real(share_right(labels, e.answers.labels)));
    for (const ComplementaryPair& pair : pairs) {
      JsonObject one;
      one.set("a", name(pair.a)).set("b", name(pair.b)).set("coverage", pair.coverage);
      one.set("overlap", pair.overlap);
      couples.push(one.value());
    }
    for (size_t i = 0; i < cover.models.size(); ++i) {
      JsonObject one;
      one.set("model", name(cover.models[i])).set("coverage", cover.coverage[i]);
      order.push(one.value());
    }
    JsonObject()
        .set("samples", static_cast<int64_t>(e.answers.labels.size()))
        .set("members", members)
        .set("together", votes)
        .set("pairs", couples)
        .set("cover", order)
        .print();
    return {};
  }
  for (size_t m = 0; m < e.members.size(); ++m)
    write_line(fmt::format("{:<36} {:>9}", f.models[m],
                           percent(share_right(e.answers.votes[m], e.answers.labels))));
  for (const auto& [method, labels] : e.together)
    write_out(fmt::format("{:<36} {:>9}\n", "together, " + method,
                          percent(share_right(labels, e.answers.labels))));
  constexpr size_t kMaxPairs = 10;
  for (size_t i = 0; i < std::min(pairs.size(), kMaxPairs); ++i)
    write_line(fmt::format("{} and {}: {} by one of them, {} by both", name(pairs[i].a),
                           name(pairs[i].b), percent(pairs[i].coverage),
                           percent(pairs[i].overlap)));
  if (!cover.models.empty())
    write_out(fmt::format("{} of {} members have {} right among them\n", cover.models.size(),
                          e.members.size(), percent(cover.coverage.back())));
  return {};
}

// The labels of the chosen method, by class name.
Status write_labels(const EnsembleFlags& f, const Ensemble& e) {
  if (f.out.empty()) return {};
  const auto chosen =
      std::ranges::find(e.together, f.method, &std::pair<std::string, std::vector<int64_t>>::first);
  const std::vector<std::string> classes = e.members[0].info().classes;
  std::string text = "label\n";
  for (const int64_t label : chosen->second) {
    const auto at = static_cast<size_t>(label);
    text += (at < classes.size() ? printable(classes[at]) : fmt::format("{}", label)) + "\n";
  }
  return write_file(f.out, text);
}

Status run_ensemble(const EnsembleFlags& f) {
  LOOM_ASSIGN(const Engine engine, f.engine.create(f.memory));
  LOOM_ASSIGN(const Ensemble e, ask_together(f, engine));
  LOOM_TRY(print_ensemble(f, e));
  return write_labels(f, e);
}

int run(const EnsembleFlags& f) {
  if (f.method != "majority" && f.method != "soft" && f.method != "stack")
    return fail(kUsage,
                fmt::format("--method {}: choose majority, soft or stack", printable(f.method)));
  if (f.fit.empty() && (f.method == "stack" || !f.judge.empty()))
    return fail(kUsage, "stacking learns from samples of its own: give them with --fit");
  Outputs outputs(f.force);
  for (const std::string& model : f.models) outputs.input("MODELS", model);
  const Status writable =
      outputs.input("--data", f.data.path)
          .input("--fit", f.fit)
          .text("-o", f.out, {".csv"}, "the labels")
          .file("--judge", f.judge, {".entity", ".safetensors", ".json"}, "the stacked network")
          .check();
  if (!writable.ok()) return fail(writable.error());
  const Status done = run_ensemble(f);
  if (done.ok()) return kDone;
  return done.error().code == Code::cancelled ? fail_interrupted() : fail(done.error());
}

}  // namespace

Verb add_ensemble(Command app) {
  auto f = std::make_shared<EnsembleFlags>();
  const Command verb =
      app.command("ensemble", "Combine several networks by voting, and find complementary pairs.");
  verb.examples(
      "  loom ensemble a.entity b.entity c.entity --data test.npz\n"
      "  loom ensemble a.entity b.entity --data test.csv --weights 2,1 --method soft -o "
      "labels.csv\n"
      "  loom ensemble a.entity b.entity --data test.npz --fit held.npz --judge judge.entity "
      "--json");
  verb.option("MODELS", f->models, "Trained networks of the same classes").required();
  verb.option("--data", f->data.path, "Labelled samples that they are asked about").required();
  verb.option("--labels", f->data.labels, "File of labels, where the data hold inputs alone");
  verb.option("--x", f->data.x, "Name of the inputs in an NPZ or safetensors file").show_default();
  verb.option("--y", f->data.y, "and of the labels").show_default();
  verb.option("--header", f->data.header, "CSV: is the first row a header: yes, no, auto")
      .show_default();
  verb.flag("--columns-by-order", f->data.columns_by_order, kColumnsByOrder);
  verb.option("--weights", f->weights, "How much each vote counts: A,B,... (default: the same)");
  verb.option("--method", f->method, "Whose labels -o gets: majority, soft, stack").show_default();
  verb.option("--fit", f->fit, "Samples that a network over all answers learns from (stacking)");
  verb.option("--fit-labels", f->fit_labels, "Their labels, where the file holds inputs alone");
  verb.option("--judge", f->judge, "Save that network");
  verb.option("--coverage", f->coverage, "List pairs that cover at least this share")
      .range(0.0, 1.0);
  verb.option("--seed", f->seed, "Seed of stacking").show_default();
  verb.option("-o,--output", f->out, "The labels as CSV");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "One JSON object instead of text");
  verb.flag("--quiet", f->quiet, "No progress, no notes");
  f->engine.add_lanes(verb);
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
