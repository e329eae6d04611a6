// loom convert and loom quantize: from any model file that can be opened to any that can be
// written.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "engine/calibrate_text.hpp"
#include "engine/convert.hpp"
#include "engine/file_memory.hpp"
#include "engine/impl.hpp"
#include "io/file.hpp"
#include "llm/decoder.hpp"
#include "outputs.hpp"
#include "progress.hpp"
#include "verbs.hpp"

namespace loom::cli {
namespace {

struct ConvertFlags {
  EngineFlags engine;
  MemoryFlags memory;
  std::string in, out, dtype, shape, calibrate;
  int64_t windows = 16, open_extent = 0;
  std::vector<std::string> rules;
  uint64_t seed = 1;
  bool per_tensor = false, with_weights = false, json = false, quiet = false, force = false,
       quantize = false;
};

Result<std::vector<ConvertRule>> parse_rules(const std::vector<std::string>& texts) {
  std::vector<ConvertRule> rules;
  for (const std::string& text : texts) {
    const size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0) {
      return Error{Code::invalid_argument,
                   fmt::format("--rule {}: write PATTERN=DTYPE, for example '*/q=int8'", text),
                   {},
                   -1};
    }
    LOOM_ASSIGN(const DType dtype, parse_dtype(text.substr(at + 1)));
    rules.push_back({text.substr(0, at), dtype});
  }
  return rules;
}

Result<OpenedModel> open(const ConvertFlags& f, ThreadPool& pool) {
  if (f.shape.empty()) return open_model(f.in, {.open_extent = f.open_extent});
  OpenedModel model;
  model.format = "random weights";
  LOOM_ASSIGN(const HfConfig config, shape_config(f.shape));
  LOOM_ASSIGN(model.decoder, random_source(config, f.seed, pool));
  return model;
}

// Observes what the text makes reach every matrix; `options.adjust` then narrows their rows.
Status calibrate(const ConvertFlags& f, const OpenedModel& model, const Engine& engine,
                 std::optional<TextCalibration>& calibration, ConvertOptions& options) {
  if (f.calibrate.empty()) return {};
  if (model.decoder == nullptr) {
    return Error{Code::unsupported,
                 "--calibrate TEXT is for language models; for a network: loom eval --calibrate",
                 f.in, -1};
  }
  LOOM_ASSIGN(const std::string text, read_text(f.calibrate));
  Progress bar("calibrating", "windows", f.quiet);
  CalibrationOptions how;
  how.windows = f.windows;
  how.progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  LOOM_ASSIGN(calibration, TextCalibration::observe(*model.decoder, text, how, *engine.impl().ops,
                                                    engine.impl().pool));
  bar.finish();
  options.adjust = [&](const Param& param, DType dtype, int64_t rows, float* values) {
    return calibration->adjust(param, dtype, rows, values);
  };
  return {};
}

// What of a signal is left after quantising: 10 log10 (power of values / power of errors).
double decibels(const PackReport& r) {
  return r.error > 0 ? 20 * std::log10(r.rms / r.error) : INFINITY;
}

struct Sum {
  int64_t from = 0, to = 0;
  double worst = INFINITY;
};

void print_line(const PackReport& r) {
  const double db = decibels(r);
  write_line(fmt::format("{:<28} {:<16} {:<8} {:<8} {:>11} {:>11}  {:>9}  {:.3e}  {:.6f}", r.path,
                         r.shape.str(), dtype_name(r.from), dtype_name(r.to), r.bytes_from,
                         r.bytes_to, std::isfinite(db) ? fmt::format("{:.1f} dB", db) : "exact",
                         r.max_error, r.cosine));
}

JsonValue report_json(const PackReport& r) {
  JsonObject out;
  out.set("path", r.path)
      .set("shape", r.shape.str())
      .set("from", dtype_name(r.from))
      .set("to", dtype_name(r.to))
      .set("bytes_from", r.bytes_from)
      .set("bytes_to", r.bytes_to)
      .set("rms", r.rms)
      .set("error", r.error)
      .set("max_error", r.max_error)
      .set("cosine", r.cosine);
  return out.value();
}

// Of a file; of the weights of a folder.
int64_t size_of(const std::string& path) {
  if (is_directory(path)) return size_of(path + "/model.safetensors");
  const Result<MappedFile> file = MappedFile::open(path);
  return file.ok() ? static_cast<int64_t>(file->bytes().size()) : 0;
}

Status convert(const ConvertFlags& f) {
  LOOM_ASSIGN(const Engine engine, f.engine.create());
  ThreadPool& pool = engine.impl().pool;
  ConvertOptions options;
  if (!f.dtype.empty()) {
    LOOM_ASSIGN(options.dtype, parse_dtype(f.dtype));
  }
  LOOM_ASSIGN(options.rules, parse_rules(f.rules));
  options.per_tensor = f.per_tensor;
  options.with_weights = f.with_weights;
  LOOM_ASSIGN(const MemoryBudget memory, f.memory.create());
  LOOM_TRY(check_opening(f.in, memory));
  LOOM_ASSIGN(const OpenedModel model, open(f, pool));
  if (!f.quiet) {
    for (const std::string& inferred : model.notes) note(inferred);
    for (const std::string& dropped : left_out(f.out, model, options)) note(dropped);
  }
  std::optional<TextCalibration> calibration;
  LOOM_TRY(calibrate(f, model, engine, calibration, options));
  std::vector<PackReport> reports;
  if (f.quantize) options.report = [&](const PackReport& r) { reports.push_back(r); };
  Progress bar("writing", "bytes", f.quiet);
  options.progress = [&](uint64_t done, uint64_t total) {
    bar.update(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return !interrupted();
  };
  LOOM_TRY(write_model(f.out, model, options, pool));
  bar.finish();
  if (f.json) {
    JsonValue list = JsonValue::array();
    for (const PackReport& r : reports) list.push(report_json(r));
    JsonObject out;
    out.set("input", f.shape.empty() ? f.in : f.shape)
        .set("format", model.format)
        .set("output", f.out)
        .set("bytes", size_of(f.out));
    if (f.quantize) out.set("tensors", std::move(list));
    out.print();
    return {};
  }
  if (f.quiet) return {};
  Sum sum;
  if (f.quantize) {
    write_out(fmt::format("{:<28} {:<16} {:<8} {:<8} {:>11} {:>11}  {:>9}  {:<9}  {}\n",
                          "parameter", "shape", "from", "to", "bytes", "bytes", "signal",
                          "max error", "cosine"));
  }
  for (const PackReport& r : reports) {
    print_line(r);
    sum.from += r.bytes_from;
    sum.to += r.bytes_to;
  }
  if (f.quantize)
    write_out(fmt::format(
        "parameters: {} -> {} bytes, {:.2f} times smaller\n", sum.from, sum.to,
        static_cast<double>(sum.from) / static_cast<double>(std::max<int64_t>(sum.to, 1))));
  write_line(fmt::format("{}: {} bytes", f.out, size_of(f.out)));
  return {};
}

Status check_output(const ConvertFlags& f) {
  if (f.quantize) return Outputs().file("OUT", f.out, {".entity"}, "packed weights").check();
  return Outputs()
      .file("OUT", f.out, {".entity", ".gguf", ".onnx", ".safetensors", ".npz", ".json", ""},
            "a model")
      .check();
}

int run(const ConvertFlags& f) {
  if (f.in.empty() == f.shape.empty()) return fail(kUsage, "give either IN or --shape; see --help");
  if (!f.force && file_exists(f.out)) {
    return fail(kUsage, fmt::format("{}: exists already; --force replaces it", f.out));
  }
  const Status writable = check_output(f);
  if (!writable.ok()) return fail(writable.error());
  const Status done = convert(f);
  return done.ok() ? kDone : fail(done.error());
}

void add_common(Command verb, ConvertFlags& f) {
  verb.option(
          "--rule", f.rules,
          "PATTERN=DTYPE for parameters whose path fits (* stands for any text); the first that "
          "fits decides")
      .one_at_a_time();
  verb.option("--open-extent", f.open_extent,
              "ONNX: the length of axes that the file leaves open, besides the batch")
      .range(0, 1 << 24);
  verb.flag("--per-tensor", f.per_tensor, "One scale per matrix instead of one per row");
  verb.option("--shape", f.shape, "Random weights of a named shape instead of IN");
  verb.option("--seed", f.seed, "Of those").show_default();
  verb.flag("--force", f.force, "Replace a file that exists");
  verb.flag("--json", f.json, "One JSON object instead of text");
  verb.flag("--quiet", f.quiet, "No progress, no notes");
  f.engine.add_lanes(verb);
  f.memory.add(verb);
}

}  // namespace

Verb add_convert(Command app) {
  auto f = std::make_shared<ConvertFlags>();
  const Command verb = app.command("convert", "Write a model in another format.");
  verb.examples(
      "  loom convert models/stories.entity stories.gguf\n"
      "  loom convert trained.safetensors net.entity\n"
      "  loom convert net.entity net.json");
  // Positional arguments fill up in order, so OUT is an option where --shape stands for IN.
  verb.option("IN", f->in, "Model: a folder, .entity, .gguf, .onnx, .safetensors or .json");
  verb.option("OUT,-o,--output", f->out,
              "File to write: .entity, .gguf, .onnx, .safetensors, .npz, .json; a folder without "
              "an extension")
      .required();
  verb.option("--dtype", f->dtype, "Number type of the matrices (default: as stored)");
  verb.flag("--with-weights", f->with_weights,
            ".json: the weights too, as base64 (of networks; default: the description alone)");
  add_common(verb, *f);
  return {verb, [f] { return run(*f); }};
}

Verb add_quantize(Command app) {
  auto f = std::make_shared<ConvertFlags>();
  f->quantize = true;
  const Command verb =
      app.command("quantize", "Pack a model in another number type, and report what it costs.");
  verb.examples(
      "  loom quantize models/stories.entity stories.entity --dtype q4_0\n"
      "  loom quantize net.entity small.entity --dtype int4 --rule '*/weight=int8' --json");
  verb.option("IN", f->in, "Model: a folder, .entity, .gguf, .onnx, .safetensors or .json");
  verb.option("OUT,-o,--output", f->out, "The .entity file to write").required();
  verb.option("--dtype", f->dtype, "Number type of the matrices").required();
  const Option text = verb.option("--calibrate", f->calibrate,
                                  "A text; rows are narrowed to what costs its products least");
  verb.option("--calibrate-windows", f->windows, "Windows of 128 tokens of it")
      .range(1, 1 << 20)
      .show_default()
      .needs(text);
  add_common(verb, *f);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
