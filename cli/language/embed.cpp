// loom embed: texts as vectors, printed or written, or compared with each other.
#include <fmt/core.h>

#include <cstring>
#include <memory>

#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

struct EmbedFlags {
  EngineFlags engine;
  ModelFlags model;
  std::vector<std::string> texts;
  bool force = false;
  std::string file, output;
  bool similarity = false, json = false, quiet = false;
  OptionFlags line;  // EmbedOptions
};

// A text per line; the last line may have no end.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Result<std::vector<std::string>> texts_of(const EmbedFlags& f) {
  if (!f.texts.empty()) return f.texts;
  LOOM_ASSIGN(const uint64_t limit, f.model.memory.text_limit());
  std::string text;
  if (f.file.empty() || f.file == "-") {
    LOOM_ASSIGN(text, read_stdin(limit));
  } else {
    LOOM_ASSIGN(text, read_file(f.file, limit));
  }
  std::vector<std::string> lines = lines_of(text);
  if (!lines.empty()) return lines;
  return Error{Code::invalid_argument, "there is no text; give one per line", f.file, -1};
}

Json vector_json(std::span<const float> values) {
  Json list = Json::array();
  for (const float value : values) list.push(Json::real(static_cast<double>(value)));
  return list;
}

// One line of JSON per text; per token vectors are a list of lists.
void print_vector(const TextEmbedding& found, size_t index) {
  const size_t width = found.values.size() / static_cast<size_t>(found.rows);
  Json vectors = vector_json(found.values);
  if (found.rows > 1) {
    vectors = Json::array();
    for (size_t r = 0; r < static_cast<size_t>(found.rows); ++r)
      vectors.push(vector_json(std::span(found.values).subspan(r * width, width)));
  }
  JsonObject()
      .set("index", static_cast<int64_t>(index))
      .set("tokens", found.tokens)
      .set("truncated", found.truncated)
      .set("embedding", vectors)
      .print();
}

std::string csv_of(const std::vector<TextEmbedding>& found) {
  std::string out;
  for (const TextEmbedding& one : found) {
    for (size_t i = 0; i < one.values.size(); ++i)
      out += fmt::format("{}{}", i > 0 ? "," : "", one.values[i]);
    out += '\n';
  }
  return out;
}

// The array [texts, width] as NumPy keeps it (format 1.0, float32, little-endian).
std::string npy_of(const std::vector<float>& values, size_t rows) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows,
                  values.size() / rows);
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int byte = 0; byte < 4; ++byte) out += static_cast<char>(bits >> (8 * byte) & 0xff);
  }
  return out;
}

Status write_vectors(const std::string& path, const std::vector<TextEmbedding>& found) {
  if (path.ends_with(".csv")) return write_file(path, csv_of(found));
  std::vector<float> all;
  for (const TextEmbedding& one : found)
    all.insert(all.end(), one.values.begin(), one.values.end());
  if (path.ends_with(".npy")) return write_file(path, npy_of(all, found.size()));
  const auto rows = static_cast<int64_t>(found.size());
  LOOM_ASSIGN(const Tensor array,
              Tensor::copy(all, {rows, static_cast<int64_t>(all.size()) / rows}));
  return save_arrays(path, {{"embeddings", array}});
}

// Row i, column j: how alike texts i and j are.
void print_similarity(const std::vector<TextEmbedding>& found, bool json) {
  Json rows = Json::array();
  std::string out;
  for (const TextEmbedding& a : found) {
    Json row = Json::array();
    for (const TextEmbedding& b : found) {
      const float alike = cosine(a.values, b.values);
      row.push(Json::real(static_cast<double>(alike)));
      out += fmt::format("{}{:.4f}", &b == &found.front() ? "" : " ", alike);
    }
    rows.push(row);
    out += '\n';
  }
  write_out(json ? rows.text() + "\n" : out);
}

Status check_flags(const EmbedFlags& f) {
  const bool lists = f.line.text("pool") == "none";
  if (lists && (f.similarity || !f.output.empty()))
    return Error{Code::invalid_argument,
                 "--pool none gives a vector per token; print them, or choose another pooling",
                 {},
                 -1};
  Outputs outputs(f.force);
  outputs.input("--file", f.file == "-" ? std::string() : f.file);
  outputs.file("-o", f.output, {".npy", ".npz", ".csv"}, "the vectors");
  return outputs.check();
}

int run(EmbedFlags& f) {
  if (f.texts.empty() && f.file.empty() && stdin_is_terminal())
    return fail(kUsage, "no text; give it as an argument, with --file, or on stdin");
  if (const Status status = check_flags(f); !status.ok()) return fail(status.error());
  EmbedOptions options;
  if (const Status read = f.line.read(options); !read.ok()) return fail(read.error());
  const Result<std::vector<std::string>> texts = texts_of(f);
  if (!texts.ok()) return fail(texts.error());
  const Result<Engine> engine = f.engine.create(f.model.memory);
  if (!engine.ok()) return fail(engine.error());
  const Result<Model> model = f.model.load(*engine, f.quiet);
  if (!model.ok()) return fail(model.error());
  Progress bar("embedding", "texts", f.quiet);
  options.progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  const Result<std::vector<TextEmbedding>> found = model->embed(*texts, options);
  bar.finish();
  if (!found.ok()) return interrupted() ? fail_interrupted() : fail(found.error());
  int64_t cut = 0;
  for (const TextEmbedding& one : *found) cut += one.truncated ? 1 : 0;
  if (cut > 0 && !f.quiet) note(fmt::format("{} texts were too long and lost their end", cut));
  if (!f.output.empty()) {
    if (const Status status = write_vectors(f.output, *found); !status.ok())
      return fail(status.error());
  }
  if (f.similarity) {
    print_similarity(*found, f.json);
  } else if (f.output.empty()) {
    for (size_t i = 0; i < found->size(); ++i) print_vector((*found)[i], i);
  }
  return kDone;
}

}  // namespace

Verb add_embed(Command app) {
  auto f = std::make_shared<EmbedFlags>();
  const Command verb = app.command("embed", "Turn texts into vectors.");
  verb.examples(
      "  loom embed all-MiniLM-L6-v2 \"A cat sleeps.\"\n"
      "  loom embed all-MiniLM-L6-v2 \"A cat.\" \"A dog.\" \"Tax law.\" --similarity\n"
      "  loom embed e5-small-v2 --file lines.txt --prompt \"passage: \" -o vectors.npy\n"
      "  cat lines.txt | loom embed all-MiniLM-L6-v2 > vectors.jsonl");
  f->model.add(verb);
  const Option texts = verb.option("TEXT", f->texts, "Texts (default: stdin, one per line)");
  verb.option("--file", f->file, "A file with one text per line; -: stdin").excludes(texts);
  verb.option("-o,--output", f->output, "Write the vectors: .npy, .npz or .csv");
  verb.flag("--similarity", f->similarity, "Print the cosines of all pairs of texts");
  f->line.add(verb, list_options(EmbedOptions()));
  f->line.option("prompt").excludes(f->line.option("prompt-name"));
  f->engine.add(verb);
  f->engine.add_device(verb);
  add_force(verb, f->force);
  verb.flag("--json", f->json, "With --similarity: JSON instead of text");
  verb.flag("--quiet", f->quiet, "No progress and no notes");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
