// loom verify files: every layer kind in every number type, saved, opened by a fresh process and
// saved again: the same bytes, the same outputs.
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "api/engine/impl.hpp"
#include "base/text.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "lab.hpp"
#include "lab/file_proof.hpp"

extern char** environ;

namespace loom::core::cli {
namespace {

constexpr int kTypes = 23;  // the 21 of the original, NF4 and E3M0; block formats by --dtypes

struct FilesFlags {
  EngineFlags engine;
  std::string kind, folder, reload, copy;
  std::vector<std::string> dtypes;
  bool force = false;
  int64_t batch = 8;
  int steps = 3;
  bool json = false, quiet = false;
};

Json proof_json(const FileProof& p) {
  return JsonObject()
      .set("file", p.file)
      .set("output", p.output)
      .set("bytes", p.bytes)
      .set("alive", p.alive)
      .value();
}

Result<FileProof> read_proof(const std::string& text) {
  LOOM_ASSIGN(const JsonValue json, parse_json(text, "the fresh process"));
  FileProof p;
  const auto at = [&](const char* key) { return json.find(key); };
  if (at("file") == nullptr || at("output") == nullptr || at("bytes") == nullptr ||
      at("alive") == nullptr)
    return Error{Code::internal, "the fresh process said something else: " + text, {}, -1};
  p.file = at("file")->text();
  p.output = at("output")->text();
  LOOM_ASSIGN(p.bytes, at("bytes")->as_int("bytes"));
  LOOM_ASSIGN(p.alive, at("alive")->as_bool("alive"));
  return p;
}

// Runs this program again with `arguments`, and returns its stdout.
Result<std::string> run_fresh(const std::vector<std::string>& arguments) {
  const auto failed = [](const char* what) {
    return Error{Code::io_error, fmt::format("cannot start a fresh process: {}", what), {}, -1};
  };
  int ends[2];
  if (pipe(ends) != 0) return failed("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::vector<char*> argv = {const_cast<char*>(self.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int started = posix_spawn(&child, self.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while (started == 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  if (started != 0) return failed(std::generic_category().message(started).c_str());
  int status = 0;
  waitpid(child, &status, 0);
  if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone)
    return Error{Code::internal, "the fresh process failed", {}, -1};
  return text;
}

struct Row {
  std::string kind;
  DType dtype;
  FileProof saved[2], opened[2];  // cold and hot
  bool holds() const {
    for (int i = 0; i < 2; ++i) {
      if (!(saved[i] == opened[i]) || !saved[i].alive) return false;
    }
    return true;
  }
};

Result<Row> prove(const FilesFlags& f, const Engine& engine, const KindNetwork& k, DType dtype) {
  Row row{std::string(k.kind), dtype, {}, {}};
  for (int hot = 0; hot < 2; ++hot) {
    const std::string base =
        fmt::format("{}/{}-{}-{}", f.folder, k.kind, dtype_name(dtype), hot == 0 ? "cold" : "hot");
    FileProofOptions options;
    options.dtype = dtype;
    options.batch = k.batch;
    options.hot_steps = hot * f.steps;
    LOOM_ASSIGN(row.saved[hot], prove_saving(k.network, options, base + ".entity",
                                             *engine.impl().ops, engine.impl().pool));
    LOOM_ASSIGN(const std::string line,
                run_fresh({"verify", "files", "--reload", base + ".entity", "--copy",
                           base + ".copy.entity", "--batch", std::to_string(k.batch)}));
    LOOM_ASSIGN(row.opened[hot], read_proof(line));
  }
  return row;
}

std::string verdict(const FileProof& saved, const FileProof& opened) {
  if (!saved.alive) return "dead";
  if (saved.output != opened.output) return "outputs differ";
  return saved.file == opened.file ? "same" : "bytes differ";
}

Result<std::vector<DType>> types_of(const FilesFlags& f) {
  std::vector<DType> types;
  for (const std::string& name : f.dtypes) {
    LOOM_ASSIGN(const DType dtype, parse_dtype(name));
    types.push_back(dtype);
  }
  for (int i = 0; f.dtypes.empty() && i < kTypes; ++i) types.push_back(static_cast<DType>(i));
  return types;
}

// A folder of this run's own, removed at its end.
struct Scratch {
  std::filesystem::path path;
  bool own = false;
  ~Scratch() {
    std::error_code error;
    if (own) std::filesystem::remove_all(path, error);
  }
};

int prove_all(FilesFlags f) {
  const Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  const Result<std::vector<DType>> types = types_of(f);
  if (!types.ok()) return fail(types.error());
  Scratch scratch;
  std::error_code error;
  scratch.own = f.folder.empty();
  scratch.path = scratch.own ? std::filesystem::temp_directory_path(error) /
                                   fmt::format("loom-verify-files-{}", getpid())
                             : std::filesystem::path(f.folder);
  std::filesystem::create_directories(scratch.path, error);
  f.folder = scratch.path.string();
  if (error || !is_directory(f.folder)) {
    const bool wrong = file_exists(f.folder) || error == std::errc::not_a_directory;
    return fail(wrong ? kUsage : kFailed,
                fmt::format("{}: no folder can be made there: {}", f.folder,
                            wrong ? "there is a file" : error.message()));
  }
  std::vector<const KindNetwork*> kinds;
  for (const KindNetwork& k : kind_networks()) {
    if (f.kind.empty() || to_lower_ascii(f.kind) == to_lower_ascii(k.kind)) kinds.push_back(&k);
  }
  if (kinds.empty()) return fail(unknown_kind(f.kind));
  Progress bar("verifying", "networks", f.quiet);
  const auto total = static_cast<int64_t>(kinds.size() * types->size());
  int64_t done = 0, held = 0;
  Json list = Json::array();
  if (!f.json)
    write_out(fmt::format("{:<20} {:<9} {:>6}  {:<14} {:<14} output (cold)\n", "layer", "dtype",
                          "bytes", "cold", "hot"));
  for (const KindNetwork* k : kinds) {
    for (const DType dtype : *types) {
      if (interrupted()) return fail_interrupted();
      const Result<Row> row = prove(f, *engine, *k, dtype);
      if (!row.ok()) return fail(row.error());
      bar.update(++done, total);
      held += row->holds() ? 1 : 0;
      if (f.json) {
        JsonObject item;
        item.set("kind", row->kind).set("dtype", dtype_name(dtype)).set("holds", row->holds());
        item.set("cold", proof_json(row->saved[0])).set("hot", proof_json(row->saved[1]));
        list.push(item.value());
        continue;
      }
      write_out(fmt::format("{:<20} {:<9} {:>6}  {:<14} {:<14} {}\n", row->kind, dtype_name(dtype),
                            row->saved[0].bytes, verdict(row->saved[0], row->opened[0]),
                            verdict(row->saved[1], row->opened[1]), row->saved[0].output));
    }
  }
  bar.finish();
  if (f.json) {
    JsonObject().set("networks", done).set("hold", held).set("rows", std::move(list)).print();
  } else {
    write_out(
        fmt::format("{} of {} hold: saved, opened by a fresh process and saved again, cold and "
                    "hot, they have the same bytes and compute the same bits\n",
                    held, done));
  }
  return held == done ? kDone : kMismatch;
}

int reload(const FilesFlags& f) {
  const Status writable = Outputs(f.force)
                              .input("--reload", f.reload)
                              .file("--copy", f.copy, {".entity"}, "the same network again")
                              .check();
  if (!writable.ok()) return fail(writable.error());
  const Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  const Result<FileProof> proof =
      prove_opening(f.reload, f.copy, f.batch, *engine->impl().ops, engine->impl().pool);
  if (!proof.ok()) return fail(proof.error());
  write_out(proof_json(*proof).text() + "\n");
  return kDone;
}

}  // namespace

Verb add_verify_files(Command app) {
  auto f = std::make_shared<FilesFlags>();
  f->engine.exact_threads = true;
  const Command verb = app.find("verify").command(
      "files",
      "Saves every layer kind in every number type, opens it in a fresh process and saves it "
      "again: a line each.");
  verb.examples(
      "  loom verify files                               # 20 layer kinds x 23 number types\n"
      "  loom verify files --kind LSTM --dtypes int8,q4_0 --folder kept\n"
      "  loom verify files --reload net.entity --copy net2.entity --batch 3");
  verb.option("--kind", f->kind, "Only this layer kind");
  verb.option("--dtypes", f->dtypes, "Only these number types").split_at(',');
  verb.option("--steps", f->steps, "Training steps of the hot networks")
      .range(1, 1 << 20)
      .show_default();
  verb.option("--folder", f->folder, "Where the files are kept (default: removed at the end)");
  const Option reload_option =
      verb.option("--reload", f->reload, "Open this file instead, and say what it is");
  verb.option("--copy", f->copy, "With --reload: save it again under this name")
      .needs(reload_option);
  verb.option("--batch", f->batch, "With --reload: samples of a pass").range(1, 1 << 20);
  add_force(verb, f->force);
  verb.flag("--json", f->json, "One JSON object instead of text");
  verb.flag("--quiet", f->quiet, "No progress");
  f->engine.add_lanes(verb);
  return {verb, [f] { return f->reload.empty() ? prove_all(*f) : reload(*f); }};
}

}  // namespace loom::core::cli
