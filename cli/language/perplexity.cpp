// loom perplexity: how well a model predicts a text; one number type, or a table of many.

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <optional>

#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

struct PerplexityFlags {
  EngineFlags engine;
  ModelFlags model;
  std::string file, reference;
  std::vector<std::string> dtypes;
  bool all_dtypes = false, json = false, quiet = false;
  int64_t start_char = 0;
  OptionFlags windows;
  PerplexityOptions how;  // those of the line
};

struct Row {
  std::string dtype;
  int64_t bytes = 0, parameters = 0;
  double tokens_per_second = 0;
  bool compared = false;  // with a reference
  Perplexity measured;

  double bits() const {
    return parameters > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters) : 0;
  }
};

// `text` from Unicode character `start` on.
std::string_view from_character(std::string_view text, int64_t start) {
  size_t at = 0;
  while (start > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    --start;
  }
  return text.substr(at);
}

// Without the weights, so that a text which does not fit is refused before they are read.
Result<std::vector<TokenId>> read_tokens(const PerplexityFlags& f, const Engine& engine) {
  LOOM_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(f.model.folder, engine));
  LOOM_ASSIGN(const uint64_t limit, f.model.memory.text_limit());
  std::string text;
  if (f.file == "-") {
    LOOM_ASSIGN(text, read_stdin(limit));
  } else {
    LOOM_ASSIGN(text, read_file(f.file, limit));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return Error{Code::bad_file, "is empty", f.file == "-" ? "stdin" : f.file, -1};
  return tokenizer.encode(from_character(text, f.start_char));
}

Result<Model> load(const PerplexityFlags& f, const Engine& engine, const std::string& dtype) {
  ModelFlags loading = f.model;
  loading.dtype = dtype;
  return loading.load(engine, f.quiet);
}

// Predictions per second of one window.
Result<double> speed(const PerplexityFlags& f, const Model& model,
                     const std::vector<TokenId>& ids) {
  PerplexityOptions one = f.how;
  one.limit = one.window;
  const auto start = std::chrono::steady_clock::now();
  LOOM_ASSIGN(const Perplexity measured, model.perplexity(ids, one));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(measured.predictions) / took.count();
}

Result<Row> measure(const PerplexityFlags& f, const Model& model, const Model* reference,
                    const std::vector<TokenId>& ids) {
  const ModelInfo info = model.info();
  Row row{std::string(dtype_name(info.dtype)), info.bytes, info.parameters};
  Progress bar(row.dtype, "tokens", f.quiet);
  PerplexityOptions measuring = f.how;
  measuring.progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  measuring.reference = reference;
  row.compared = reference != nullptr;
  LOOM_ASSIGN(row.measured, model.perplexity(ids, measuring));
  LOOM_ASSIGN(row.tokens_per_second, speed(f, model, ids));
  return row;
}

Json row_json(const Row& row, const PerplexityFlags& f, std::optional<double> base) {
  JsonObject out;
  out.set("dtype", row.dtype)
      .set("perplexity", row.measured.perplexity)
      .set("nats_per_token", row.measured.nats_per_token)
      .set("predictions", row.measured.predictions)
      .set("window", f.how.window)
      .set("weight_bytes", row.bytes)
      .set("bits_per_weight", row.bits())
      .set("tokens_per_second", row.tokens_per_second);
  if (row.compared) {
    out.set("kl_divergence", row.measured.kl_divergence)
        .set("top_agreement", row.measured.top_agreement);
  }
  if (base) out.set("ratio_to_f32", row.measured.perplexity / *base);
  return out.value();
}

Result<std::optional<Model>> load_reference(const PerplexityFlags& f, const Engine& engine) {
  if (f.reference.empty()) return std::optional<Model>();
  ModelFlags loading = f.model;
  loading.folder = f.reference;
  loading.dtype = "float32";
  LOOM_ASSIGN(Model model, loading.load(engine, f.quiet));
  return std::optional<Model>(std::move(model));
}

int measure_one(const PerplexityFlags& f, const Engine& engine, const std::vector<TokenId>& ids) {
  const Result<std::optional<Model>> other = load_reference(f, engine);
  if (!other.ok()) return fail(other.error());
  const Model* reference = *other ? &**other : nullptr;
  const Result<Model> model = load(f, engine, f.model.dtype);
  if (!model.ok()) return fail(model.error());
  const Result<Row> row = measure(f, *model, reference, ids);
  if (!row.ok()) return fail(row.error());
  if (f.json) {
    write_out(row_json(*row, f, {}).text() + "\n");
    return kDone;
  }
  write_out(fmt::format("{:.4f}\n", row->measured.perplexity));
  if (row->compared) {
    write_out(fmt::format("KL divergence {:.6f}, same most likely token {:.2f} %\n",
                          row->measured.kl_divergence, row->measured.top_agreement * 100));
  }
  if (!f.quiet) {
    fmt::print(stderr, "[{}, {} predictions in windows of {}, {:.5f} nats each]\n", row->dtype,
               row->measured.predictions, f.how.window, row->measured.nats_per_token);
  }
  return kDone;
}

void print_row(const Row& row, double base) {
  write_out(fmt::format(
      "{:<10} {:>6.2f} {:>14} {:>12.4f} {:>+8.2f} % {:>10.6f} {:>8.2f} % {:>9.0f}\n", row.dtype,
      row.bits(), row.bytes, row.measured.perplexity, (row.measured.perplexity / base - 1.0) * 100,
      row.measured.kl_divergence, row.measured.top_agreement * 100, row.tokens_per_second));
}

// The other types are compared with float32, or with --reference.
int measure_many(const PerplexityFlags& f, const Engine& engine, const std::vector<TokenId>& ids) {
  std::vector<std::string> dtypes = {"float32"};
  for (const std::string& name : f.all_dtypes ? dtype_names() : f.dtypes) {
    const Result<DType> dtype = parse_dtype(name);
    if (!dtype.ok()) return fail(dtype.error());
    if (*dtype != DType::float32) dtypes.emplace_back(dtype_name(*dtype));
  }
  const Result<std::optional<Model>> other = load_reference(f, engine);
  if (!other.ok()) return fail(other.error());
  const Result<Model> plain = load(f, engine, dtypes[0]);
  if (!plain.ok()) return fail(plain.error());
  const Model* reference = *other ? &**other : &*plain;
  if (!f.json) {
    write_out(fmt::format("{:<10} {:>6} {:>14} {:>12} {:>10} {:>10} {:>10} {:>9}\n", "dtype",
                          "bits", "weight bytes", "perplexity", "to f32", "KL", "same top",
                          "tokens/s"));
  }
  Json list = Json::array();
  std::optional<double> base;
  for (const std::string& dtype : dtypes) {
    std::optional<Model> own;
    if (base) {
      Result<Model> loaded = load(f, engine, dtype);
      if (!loaded.ok()) return fail(loaded.error());
      own = std::move(*loaded);
    }
    const Result<Row> row = measure(f, own ? *own : *plain, reference, ids);
    if (!row.ok()) return fail(row.error());
    if (!base) base = row->measured.perplexity;
    if (f.json) {
      list.push(row_json(*row, f, base));
    } else {
      print_row(*row, *base);
    }
  }
  if (f.json) write_out(list.text() + "\n");
  return kDone;
}

int run(PerplexityFlags& f) {
  const Status read = f.windows.read(f.how);
  if (!read.ok()) return fail(read.error());
  const Result<Engine> engine = f.engine.create(f.model.memory);
  if (!engine.ok()) return fail(engine.error());
  const Result<std::vector<TokenId>> ids = read_tokens(f, *engine);
  if (!ids.ok()) return fail(ids.error());
  if (f.all_dtypes || !f.dtypes.empty()) return measure_many(f, *engine, *ids);
  return measure_one(f, *engine, *ids);
}

}  // namespace

Verb add_perplexity(Command app) {
  auto f = std::make_shared<PerplexityFlags>();
  const Command verb = app.command("perplexity", "Measure how well a model predicts a text.");
  verb.examples(
      "  loom perplexity models/stories.entity story.txt --window 256\n"
      "  loom perplexity models/stories.entity story.txt --dtypes q8_0,int8,q4_0");
  const Option one = f->model.add(verb);
  verb.option("TEXTFILE", f->file, "A text; -: from stdin").required();
  f->windows.add(verb, list_options(PerplexityOptions()), {});
  verb.option("--start-char", f->start_char, "Begin at this Unicode character of the text")
      .range(0, int64_t{1} << 40);
  const Option some = verb.option("--dtypes", f->dtypes, "A table of these, and of f32: a,b,c")
                          .split_at(',')
                          .excludes(one);
  verb.flag("--all-dtypes", f->all_dtypes, "A table of every number type")
      .excludes(one)
      .excludes(some);
  verb.option("--reference", f->reference,
              "A model with the same vocabulary to compare with: KL divergence, same top tokens")
      .names_model();
  f->engine.add(verb);
  f->engine.add_device(verb);
  verb.flag("--json", f->json, "JSON instead of text");
  verb.flag("--quiet", f->quiet, "No progress and no notes");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
