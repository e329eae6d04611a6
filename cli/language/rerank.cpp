// loom rerank: documents by how well they answer a query.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

struct RerankFlags {
  EngineFlags engine;
  ModelFlags model;
  std::string query, file;
  std::vector<std::string> documents;
  int64_t top = 0;
  OptionFlags line;  // RerankOptions
  bool json = false, quiet = false;
};

Result<std::vector<std::string>> documents_of(const RerankFlags& f) {
  if (!f.documents.empty()) return f.documents;
  LOOM_ASSIGN(const uint64_t limit, f.model.memory.text_limit());
  std::string text;
  if (f.file.empty() || f.file == "-") {
    LOOM_ASSIGN(text, read_stdin(limit));
  } else {
    LOOM_ASSIGN(text, read_file(f.file, limit));
  }
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (!lines.empty()) return lines;
  return Error{Code::invalid_argument, "there is no document; give one per line", f.file, -1};
}

void print_ranked(const RerankFlags& f, const std::vector<Ranked>& ranked,
                  const std::vector<std::string>& documents) {
  size_t count = ranked.size();
  if (f.top > 0) count = std::min(count, static_cast<size_t>(f.top));
  for (size_t i = 0; i < count; ++i) {
    const Ranked& one = ranked[i];
    const std::string& text = documents[static_cast<size_t>(one.index)];
    if (f.json) {
      JsonObject()
          .set("index", one.index)
          .set("score", static_cast<double>(one.score))
          .set("logit", static_cast<double>(one.logit))
          .set("document", text)
          .print();
    } else {
      write_line(fmt::format("{:.4f}  {}  {}", one.score, one.index, text));
    }
  }
}

int run(const RerankFlags& f) {
  if (f.documents.empty() && f.file.empty() && stdin_is_terminal())
    return fail(kUsage, "no documents; give them as arguments, with --file, or on stdin");
  const Result<std::vector<std::string>> documents = documents_of(f);
  if (!documents.ok()) return fail(documents.error());
  const Result<Engine> engine = f.engine.create(f.model.memory);
  if (!engine.ok()) return fail(engine.error());
  const Result<Model> model = f.model.load(*engine, f.quiet);
  if (!model.ok()) return fail(model.error());
  Progress bar("ranking", "documents", f.quiet);
  RerankOptions options;
  const Status read = f.line.read(options);
  if (!read.ok()) return fail(read.error());
  options.progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  const Result<std::vector<Ranked>> ranked = model->rerank(f.query, *documents, options);
  bar.finish();
  if (!ranked.ok()) return interrupted() ? fail_interrupted() : fail(ranked.error());
  print_ranked(f, *ranked, *documents);
  return kDone;
}

}  // namespace

Verb add_rerank(Command app) {
  auto f = std::make_shared<RerankFlags>();
  const Command verb = app.command("rerank", "Sort documents by how well they answer a query.");
  verb.examples(
      "  loom rerank ms-marco-MiniLM-L6-v2 \"who painted it?\" \"Monet did.\" \"It rained.\"\n"
      "  loom rerank ms-marco-MiniLM-L6-v2 \"who painted it?\" --file lines.txt --top 3 --json");
  f->model.add(verb);
  verb.option("QUERY", f->query, "The query").required();
  const Option given =
      verb.option("DOCUMENT", f->documents, "Documents (default: stdin, one per line)");
  verb.option("--file", f->file, "A file with one document per line; -: stdin").excludes(given);
  verb.option("--top", f->top, "The best so many; 0: all").range(0, int64_t{1} << 40);
  f->line.add(verb, list_options(RerankOptions()));
  f->engine.add(verb);
  f->engine.add_device(verb);
  verb.flag("--json", f->json, "A line of JSON per document instead of text");
  verb.flag("--quiet", f->quiet, "No progress and no notes");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
