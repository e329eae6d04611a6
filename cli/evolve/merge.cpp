// loom merge: one model of several.
#include <fmt/core.h>

#include <charconv>
#include <memory>

#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

struct MergeFlags {
  EngineFlags engine;
  MemoryFlags memory;
  std::vector<std::string> models;
  OptionFlags method;    // MergeOptions; --method may be a SpliceMode too
  OptionFlags splicing;  // SpliceOptions
  std::string weights, densities, out, dtype, fitness;
  bool force = false, json = false, quiet = false;
};

Error wrong_list(const char* option, const std::string& text, std::string_view what) {
  return Error{
      Code::invalid_argument, fmt::format("{} {}: {}", option, printable(text), what), {}, -1};
}

// "0.5,0.3": a number per model; a single one applies to all, an empty text means `otherwise`.
Result<std::vector<double>> number_list(const char* option, const std::string& text, size_t count,
                                        double otherwise) {
  std::vector<double> out;
  for (const std::string& part : split_list(text)) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size())
      return wrong_list(option, text, fmt::format("'{}' is not a number", printable(part)));
    out.push_back(value);
  }
  if (out.empty()) out.push_back(otherwise);
  if (out.size() == 1) out.resize(count, out[0]);
  if (out.size() == count) return out;
  return wrong_list(option, text, fmt::format("has {} numbers for {} models", out.size(), count));
}

Result<std::vector<MergeInput>> merge_inputs(const MergeFlags& f) {
  const size_t n = f.models.size();
  LOOM_ASSIGN(const std::vector<double> weights, number_list("--weights", f.weights, n, 1));
  LOOM_ASSIGN(const std::vector<double> densities, number_list("--density", f.densities, n, 1));
  std::vector<MergeInput> inputs;
  for (size_t i = 0; i < n; ++i) inputs.push_back({f.models[i], weights[i], densities[i]});
  return inputs;
}

void print_merged(const MergeFlags& f, const MergeReport& report) {
  if (f.json) {
    JsonObject()
        .set("method", merge_method_name(report.method))
        .set("models", report.models)
        .set("parameters", report.parameters)
        .set("weights", report.weights)
        .set("output", f.out)
        .set("bytes", report.bytes)
        .print();
  } else if (!f.quiet) {
    write_line(fmt::format("{}: {} of {} models, {} weights in {} parameters, {} bytes", f.out,
                           merge_method_name(report.method), report.models, report.weights,
                           report.parameters, report.bytes));
  }
}

// Options of both kinds.
template <class Options>
Status common_options(const MergeFlags& f, Options& options, Progress& bar) {
  LOOM_ASSIGN(options.engine, f.engine.create(f.memory));
  if (!f.dtype.empty()) {
    LOOM_ASSIGN(options.dtype, parse_dtype(f.dtype));
  }
  if (!f.quiet) options.note = [](const std::string& text) { note(text); };
  options.progress = [&bar](uint64_t done, uint64_t total) {
    bar.update(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return !interrupted();
  };
  return {};
}

Status merge_files(const MergeFlags& f) {
  LOOM_ASSIGN(const std::vector<MergeInput> inputs, merge_inputs(f));
  MergeOptions options;
  LOOM_TRY(f.method.read(options));
  MergeReport report;
  {
    Progress bar("merging", "weights", f.quiet);
    LOOM_TRY(common_options(f, options, bar));
    LOOM_ASSIGN(report, merge(inputs, f.out, options));
  }
  print_merged(f, report);
  return {};
}

Json spliced_json(const SplicedLayer& layer) {
  JsonObject out;
  out.set("at", layer.at)
      .set("type", layer.type)
      .set("weights", layer.weights)
      .set("similarity", layer.similarity)
      .set("share", layer.share)
      .set("changed", layer.changed);
  if (!layer.skipped.empty()) out.set("skipped", layer.skipped);
  return out.value();
}

void print_spliced(const MergeFlags& f, const SpliceReport& report) {
  if (f.json) {
    Json list = Json::array();
    for (const SplicedLayer& layer : report.layers) list.push(spliced_json(layer));
    JsonObject()
        .set("method", f.method.text("method"))
        .set("output", f.out)
        .set("bytes", report.bytes)
        .set("crossed", report.crossed)
        .set("layers", list)
        .print();
    return;
  }
  if (f.quiet) return;
  for (const std::string& line : report.notes) note(line);
  write_out(fmt::format("{:<20} {:<20} {:>10}  {:>10}  {:>8}  {}\n", "layer", "kind", "weights",
                        "similarity", "share", "changed"));
  for (const SplicedLayer& layer : report.layers) {
    const std::string end =
        layer.skipped.empty()
            ? fmt::format("{:>10.4f}  {:>8.4f}  {}", layer.similarity, layer.share, layer.changed)
            : "left as it is: " + layer.skipped;
    write_line(fmt::format("{:<20} {:<20} {:>10}  {}", layer.at, layer.type, layer.weights, end));
  }
  write_line(fmt::format("{}: {} of {} layers crossed, {} bytes", f.out, report.crossed,
                         report.layers.size(), report.bytes));
}

Status splice_files(const MergeFlags& f, SpliceMode mode) {
  if (f.models.size() != 2)
    return Error{Code::invalid_argument,
                 fmt::format("--method {} crosses two parents, not {}", f.method.text("method"),
                             f.models.size()),
                 {},
                 -1};
  OptionFlags shared = f.method;  // the seed
  shared.set("method", {"linear"});
  MergeOptions line;
  LOOM_TRY(shared.read(line));
  SpliceOptions options;
  LOOM_TRY(f.splicing.read(options));
  options.mode = mode;
  options.seed = line.seed;
  if (!f.fitness.empty()) {
    LOOM_ASSIGN(const std::vector<double> fitness, number_list("--fitness", f.fitness, 2, 0));
    options.fitness_a = fitness[0];
    options.fitness_b = fitness[1];
  }
  SpliceReport report;
  {
    Progress bar("crossing", "weights", f.quiet);
    LOOM_TRY(common_options(f, options, bar));
    LOOM_ASSIGN(report, splice(f.models[0], f.models[1], f.out, options));
  }
  print_spliced(f, report);
  return {};
}

Status merge_or_splice(const MergeFlags& f) {
  const std::string name = f.method.text("method");
  if (name.empty()) return merge_files(f);
  const Result<SpliceMode> mode = parse_splice_mode(name);
  if (mode.ok()) return splice_files(f, *mode);
  const Result<MergeMethod> method = parse_merge_method(name);
  if (method.ok()) return merge_files(f);
  return Error{Code::invalid_argument,
               "--method: " + method.error().message + "; or blend, point or uniform to splice",
               {},
               -1};
}

int run(const MergeFlags& f) {
  Outputs outputs(f.force);
  for (const std::string& model : f.models) outputs.input("MODELS", model);
  outputs.input("--base", f.method.text("base"));
  const Status writable =
      outputs
          .file("-o", f.out, {".entity", ".gguf", ".onnx", ".safetensors", ".npz", ".json", ""},
                "the merged model")
          .check();
  if (!writable.ok()) return fail(writable.error());
  const Status done = merge_or_splice(f);
  if (done.ok()) return kDone;
  return done.error().code == Code::cancelled ? fail_interrupted() : fail(done.error());
}

}  // namespace

Verb add_merge(Command app) {
  auto f = std::make_shared<MergeFlags>();
  const Command verb = app.command(
      "merge", "Merge trained models, or cross two (--method blend, point or uniform).");
  verb.examples(
      "  loom merge a.entity b.entity --weights 0.7,0.3 -o merged.entity\n"
      "  loom merge a.entity b.entity --method slerp --t 0.4 -o merged.entity\n"
      "  loom merge math code --method ties --base base --density 0.5 -o merged\n"
      "  loom merge a.entity b.entity --method blend --fitness 0.97,0.95 -o child.entity");
  verb.option("MODELS", f->models, "Models of one network: files or folders, also language models")
      .names_model()
      .required();
  verb.option("-o,--output", f->out,
              "Where it goes, by ending: .entity, .gguf, .onnx, .safetensors, .npz, .json; a name "
              "without an ending is a Hugging Face folder")
      .required();
  verb.option("--weights", f->weights, "A number for each model, or one for all (default: 1)");
  verb.option("--density", f->densities,
              "ties, dare: share of each task vector that is kept (default: 1)");
  f->method.add(verb, list_options(MergeOptions()));
  f->splicing.add(verb, list_options(SpliceOptions()));
  verb.option("--fitness", f->fitness, "blend, uniform: of both parents, higher is better: A,B");
  verb.option("--dtype", f->dtype,
              "Number type of the matrices (default: as the first, or the base)");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "One JSON object instead of text");
  verb.flag("--quiet", f->quiet, "No progress, no notes");
  f->engine.add_lanes(verb);
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
