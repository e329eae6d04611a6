// loom convert and loom quantize: reads every model file that can be opened, writes every format
// that can be written.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

struct ConvertFlags {
  EngineFlags engine;
  MemoryFlags memory;
  WeightFlags weight_flags;
  OptionFlags method;  // ConvertOptions
  std::string in, out, dtype, calibrate;
  std::vector<std::string> rules;
  bool json = false, quiet = false, force = false, quantize = false, fold_norms = false;
};

Result<std::vector<DTypeRule>> parse_rules(const std::vector<std::string>& texts) {
  std::vector<DTypeRule> rules;
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

// Signal-to-noise ratio after quantizing: 10 log10 (power of values / power of errors).
double decibels(const PackedTensor& r) {
  return r.error > 0 ? 20 * std::log10(r.rms / r.error) : INFINITY;
}

struct Sum {
  int64_t from = 0, to = 0;
  double worst = INFINITY;
};

void print_line(const PackedTensor& r) {
  const double db = decibels(r);
  write_line(fmt::format("{:<28} {:<16} {:<8} {:<8} {:>11} {:>11}  {:>9}  {:.3e}  {:.6f}", r.name,
                         shape_text(r.shape), dtype_name(r.from), dtype_name(r.to), r.bytes_from,
                         r.bytes_to, std::isfinite(db) ? fmt::format("{:.1f} dB", db) : "exact",
                         r.max_error, r.cosine));
}

Json report_json(const PackedTensor& r) {
  JsonObject out;
  out.set("path", r.name)
      .set("shape", shape_text(r.shape))
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

Result<ConvertOptions> options_of(const ConvertFlags& f) {
  ConvertOptions options;
  if (!f.dtype.empty()) {
    LOOM_ASSIGN(options.dtype, parse_dtype(f.dtype));
  }
  LOOM_ASSIGN(options.rules, parse_rules(f.rules));
  LOOM_TRY(f.method.read(options));
  // A report is of .entity files.
  options.measure = f.quantize && f.out.ends_with(".entity");
  if (f.fold_norms) options.for_training = false;
  options.state_dict = f.weight_flags.answers;
  options.allow_nonfinite = f.weight_flags.allow_nonfinite;
  if (!f.quiet) options.note = [](const std::string& text) { note(text); };
  if (f.calibrate.empty()) {
    for (const char* flag : {"calibrate-windows", "calibration-method", "damping"}) {
      if (f.method.text(flag).empty()) continue;
      return Error{Code::invalid_argument, fmt::format("--{} needs --calibrate", flag), {}, -1};
    }
    return options;
  }
  LOOM_ASSIGN(const uint64_t limit, f.memory.text_limit());
  Result<std::string> text = read_text(f.calibrate, limit);
  if (!text.ok() && text.error().code == Code::not_found)
    return Error{Code::not_found, "no such file; --calibrate takes a text for the model to read",
                 f.calibrate, -1};
  LOOM_TRY(text.ok() ? Status() : Status(text.error()));
  options.calibration = std::move(*text);
  return options;
}

void print_json(const ConvertFlags& f, const Converted& done) {
  Json list = Json::array();
  for (const PackedTensor& r : done.tensors) list.push(report_json(r));
  JsonObject out;
  out.set("input", f.in.empty() ? f.method.text("shape") : f.in)
      .set("format", done.format)
      .set("output", f.out)
      .set("bytes", done.bytes);
  if (f.quantize) out.set("tensors", list);
  out.print();
}

void print_text(const ConvertFlags& f, const Converted& done) {
  Sum sum;
  if (f.quantize) {
    write_out(fmt::format("{:<28} {:<16} {:<8} {:<8} {:>11} {:>11}  {:>9}  {:<9}  {}\n",
                          "parameter", "shape", "from", "to", "bytes", "bytes", "signal",
                          "max error", "cosine"));
  }
  for (const PackedTensor& r : done.tensors) {
    print_line(r);
    sum.from += r.bytes_from;
    sum.to += r.bytes_to;
  }
  if (f.quantize)
    write_out(fmt::format(
        "parameters: {} -> {} bytes, {:.2f} times smaller\n", sum.from, sum.to,
        static_cast<double>(sum.from) / static_cast<double>(std::max<int64_t>(sum.to, 1))));
  write_line(fmt::format("{}: {} bytes", f.out, done.bytes));
}

// A bar for each kind of work.
class Bars {
 public:
  explicit Bars(bool quiet) : quiet_(quiet) {}
  void update(std::string_view work, uint64_t done, uint64_t total) {
    if (work != work_) {
      bar_ = std::make_unique<Progress>(std::string(work), work == "writing" ? "bytes" : "windows",
                                        quiet_);
      work_ = work;
    }
    bar_->update(static_cast<int64_t>(done), static_cast<int64_t>(total));
  }

 private:
  bool quiet_;
  std::string work_;
  std::unique_ptr<Progress> bar_;
};

Status convert_files(const ConvertFlags& f) {
  LOOM_ASSIGN(ConvertOptions options, options_of(f));
  LOOM_ASSIGN(options.engine, f.engine.create(f.memory));
  Converted done;
  {
    Bars bars(f.quiet);
    options.progress = [&](std::string_view work, uint64_t part, uint64_t all) {
      bars.update(work, part, all);
      return !interrupted();
    };
    LOOM_ASSIGN(done, convert(f.in, f.out, options));
  }
  if (f.json) {
    print_json(f, done);
  } else if (!f.quiet) {
    print_text(f, done);
  }
  return {};
}

Status check_output(const ConvertFlags& f) {
  if (f.quantize)
    return Outputs(f.force).file("OUT", f.out, {".entity", ".gguf"}, "packed weights").check();
  return Outputs(f.force)
      .file("OUT", f.out, {".entity", ".gguf", ".onnx", ".safetensors", ".npz", ".json", ""},
            "a model")
      .check();
}

int run(const ConvertFlags& f) {
  if (f.in.empty() == f.method.text("shape").empty())
    return fail(kUsage, "give either IN or --shape; see --help");
  if (f.quantize && f.dtype.empty() && f.method.text("recipe").empty() &&
      f.method.text("target-bits").empty())
    return fail(kUsage, "give --dtype, --recipe or --target-bits; see --help");
  const Status writable = check_output(f);
  if (!writable.ok()) return fail(writable.error());
  const Status done = convert_files(f);
  return done.ok() ? kDone : fail(done.error());
}

void add_common(Command verb, ConvertFlags& f) {
  verb.option(
          "--rule", f.rules,
          "PATTERN=DTYPE for parameters whose path fits (* stands for any text); the first that "
          "fits decides")
      .one_at_a_time();
  verb.flag("--fold-norms", f.fold_norms,
            "ONNX, TFLite: batch norms and functions of weights go into the weights of layers, "
            "which predicts faster and is not for training");
  add_force(verb, f.force);
  verb.flag("--json", f.json, "One JSON object instead of text");
  verb.flag("--quiet", f.quiet, "No progress, no notes");
  f.engine.add_lanes(verb);
  f.memory.add(verb);
  f.weight_flags.add(verb);
}

}  // namespace

Verb add_convert(Command app) {
  auto f = std::make_shared<ConvertFlags>();
  const Command verb = app.command("convert", "Write a model in another format.");
  verb.examples(
      "  loom convert models/stories.entity stories.gguf\n"
      "  loom convert trained.safetensors net.entity\n"
      "  loom convert net.entity net.json\n"
      "  loom convert old.entity chat.entity --tokenizer smollm2/");
  // Positional arguments fill up in order, so OUT is an option if --shape replaces IN.
  verb.option("IN", f->in, "Model: a folder, .entity, .gguf, .onnx, .tflite, .safetensors or .json")
      .names_model();
  verb.option("OUT,-o,--output", f->out,
              "File to write: .entity, .gguf, .onnx, .safetensors, .npz, .json; a folder without "
              "an extension")
      .required();
  verb.option("--dtype", f->dtype, "Number type of the matrices (default: as stored)");
  f->method.add(verb, list_options(ConvertOptions()),
                {"calibrate-windows", "calibration-method", "damping", "importance",
                 "save-importance", "target-bits"});
  add_common(verb, *f);
  return {verb, [f] { return run(*f); }};
}

Verb add_quantize(Command app) {
  auto f = std::make_shared<ConvertFlags>();
  f->quantize = true;
  const Command verb =
      app.command("quantize", "Pack a model in another number type, and report the error.");
  verb.examples(
      "  loom quantize models/stories.entity stories.entity --dtype q4_0\n"
      "  loom quantize net.entity small.entity --dtype int4 --rule '*/weight=int8' --json\n"
      "  loom quantize smollm2 small.gguf --recipe q4_k_m --calibrate text.txt\n"
      "  loom quantize smollm2 small.entity --target-bits 4.5 --calibrate text.txt");
  verb.option("IN", f->in, "Model: a folder, .entity, .gguf, .onnx, .tflite, .safetensors or .json")
      .names_model();
  verb.option("OUT,-o,--output", f->out, "The .entity or .gguf file to write").required();
  verb.option("--dtype", f->dtype, "Number type of the matrices");
  verb.option("--calibrate", f->calibrate,
              "A text; the errors of matrices are weighted by how much they change its products");
  f->method.add(verb, list_options(ConvertOptions()), {"tokenizer", "context", "with-weights"});
  add_common(verb, *f);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
