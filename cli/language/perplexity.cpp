// loom perplexity: how well a model predicts a text; one number type, or a table of many.

#include <fmt/core.h>

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
  std::string file;
  std::vector<std::string> dtypes;
  bool all_dtypes = false, json = false, quiet = false;
  int64_t start_char = 0;
  OptionFlags windows;
  PerplexityOptions how;  // those of the line
};

struct Row {
  std::string dtype;
  int64_t bytes = 0;
  Perplexity measured;
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

Result<Row> measure(const PerplexityFlags& f, const Engine& engine, const std::string& dtype,
                    const std::vector<TokenId>& ids) {
  ModelFlags loading = f.model;
  loading.dtype = dtype;
  LOOM_ASSIGN(const Model model, loading.load(engine, f.quiet));
  const std::string packed(dtype_name(model.info().dtype));
  Progress bar(packed, "tokens", f.quiet);
  PerplexityOptions measuring = f.how;
  measuring.progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  LOOM_ASSIGN(const Perplexity measured, model.perplexity(ids, measuring));
  return Row{packed, model.info().bytes, measured};
}

Json row_json(const Row& row, const PerplexityFlags& f, std::optional<double> base) {
  JsonObject out;
  out.set("dtype", row.dtype)
      .set("perplexity", row.measured.perplexity)
      .set("nats_per_token", row.measured.nats_per_token)
      .set("predictions", row.measured.predictions)
      .set("window", f.how.window)
      .set("weight_bytes", row.bytes);
  if (base) out.set("ratio_to_f32", row.measured.perplexity / *base);
  return out.value();
}

int measure_one(const PerplexityFlags& f, const Engine& engine, const std::vector<TokenId>& ids) {
  const Result<Row> row = measure(f, engine, f.model.dtype, ids);
  if (!row.ok()) return fail(row.error());
  if (f.json) {
    write_out(row_json(*row, f, {}).text() + "\n");
  } else {
    write_out(fmt::format("{:.4f}\n", row->measured.perplexity));
    if (!f.quiet) {
      fmt::print(stderr, "[{}, {} predictions in windows of {}, {:.5f} nats each]\n", row->dtype,
                 row->measured.predictions, f.how.window, row->measured.nats_per_token);
    }
  }
  return kDone;
}

// float32 comes first, because the others are compared with it.
int measure_many(const PerplexityFlags& f, const Engine& engine, const std::vector<TokenId>& ids) {
  std::vector<std::string> dtypes = {"float32"};
  for (const std::string& name : f.all_dtypes ? dtype_names() : f.dtypes) {
    const Result<DType> dtype = parse_dtype(name);
    if (!dtype.ok()) return fail(dtype.error());
    if (*dtype != DType::float32) dtypes.emplace_back(dtype_name(*dtype));
  }
  if (!f.json) {
    write_out(fmt::format("{:<10} {:>14} {:>12} {:>9}\n", "dtype", "weight bytes", "perplexity",
                          "to f32"));
  }
  Json list = Json::array();
  std::optional<double> base;
  for (const std::string& dtype : dtypes) {
    const Result<Row> row = measure(f, engine, dtype, ids);
    if (!row.ok()) return fail(row.error());
    if (!base) base = row->measured.perplexity;
    if (f.json) {
      list.push(row_json(*row, f, base));
      continue;
    }
    write_out(fmt::format("{:<10} {:>14} {:>12.4f} {:>+8.2f} %\n", row->dtype, row->bytes,
                          row->measured.perplexity,
                          (row->measured.perplexity / *base - 1.0) * 100));
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
  f->engine.add(verb);
  f->engine.add_device(verb);
  verb.flag("--json", f->json, "JSON instead of text");
  verb.flag("--quiet", f->quiet, "No progress and no notes");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
