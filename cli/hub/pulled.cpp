// loom list, show and rm: the models pulled by this program or by huggingface_hub.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <memory>

#include "../shared/verbs.hpp"
#include "cache.hpp"

namespace loom::cli {
namespace {

struct PulledFlags {
  std::string name;
  bool json = false, yes = false;
};

std::string day_text(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  std::array<char, 32> text{};
  if (gmtime_r(&time, &parts) == nullptr) return {};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &parts);
  return text.data();
}

std::string short_commit(const PulledModel& model) {
  return model.commit.substr(0, 7);
}

std::string refs_text(const PulledModel& model) {
  return model.refs.empty()
             ? short_commit(model)
             : fmt::format("{} ({})", fmt::join(model.refs, ", "), short_commit(model));
}

Json model_json(const PulledModel& model, bool files) {
  JsonObject out;
  out.set("name", model.repo)
      .set("commit", model.commit)
      .set("refs", model.refs)
      .set("kind", model.kind())
      .set("bytes", model.bytes())
      .set("modified", model.modified)
      .set("path", model.folder);
  if (files) {
    Json list = Json::array();
    for (const HubFile& file : model.files)
      list.push(JsonObject()
                    .set("path", file.path)
                    .set("bytes", file.size)
                    .set("blob", file.etag)
                    .value());
    out.set("files", list);
  }
  return out.value();
}

int run_list(const PulledFlags& f) {
  const Result<std::string> root = hub_cache_root();
  if (!root.ok()) return fail(root.error());
  const std::vector<PulledModel> models = HubCache(*root).list();
  if (f.json) {
    Json list = Json::array();
    for (const PulledModel& model : models) list.push(model_json(model, false));
    write_out(list.text() + "\n");
    return kDone;
  }
  if (models.empty()) {
    note(fmt::format("no model is in {}; `loom pull hf:ORG/NAME` brings one", *root));
    return kDone;
  }
  size_t widest = 4;
  for (const PulledModel& model : models) widest = std::max(widest, model.repo.size());
  write_line(fmt::format("{:<{}}  {:>9}  {:<16}  {:<18}  {}", "NAME", widest, "SIZE", "CHANGED",
                         "REVISION", "KIND"));
  for (const PulledModel& model : models)
    write_line(fmt::format("{:<{}}  {:>9}  {:<16}  {:<18}  {}", model.repo, widest,
                           human_bytes(model.bytes()), day_text(model.modified), refs_text(model),
                           model.kind()));
  return kDone;
}

void show_line(std::string_view name, const std::string& value) {
  write_line(fmt::format("{:<13} {}", name, value));
}

// The type of the weights, if the library can read them.
void show_decoder(const std::string& path) {
  EngineFlags flags;
  flags.threads = 1;
  const Result<Engine> engine = flags.create();
  if (!engine.ok()) return;
  const Result<ModelFile> file = ModelFile::open(path, *engine);
  if (!file.ok()) {
    show_line("runs", "no: " + file.error().message);
    return;
  }
  if (!file->decoder()) return;
  const DecoderInfo& d = *file->decoder();
  show_line("architecture", d.architecture);
  show_line("parameters", fmt::format("{}", file->parameters()));
  show_line("context", fmt::format("{} positions", d.context));
  show_line("chat", d.has_chat_template && d.chat_template_readable ? "yes" : "no");
}

int run_show(const PulledFlags& f) {
  const Result<std::string> root = hub_cache_root();
  if (!root.ok()) return fail(root.error());
  const HubCache cache(*root);
  const Result<std::vector<PulledModel>> revisions = find_revisions(cache, f.name);
  if (!revisions.ok()) return fail(revisions.error());
  if (f.json) {
    Json list = Json::array();
    for (const PulledModel& model : *revisions) list.push(model_json(model, true));
    write_out(list.text() + "\n");
    return kDone;
  }
  const Result<FoundModel> found = find_model(cache, f.name);
  for (const PulledModel& model : *revisions) {
    show_line("name", model.repo);
    show_line("revision", refs_text(model));
    show_line("kind", model.kind());
    show_line("size", human_bytes(model.bytes()));
    show_line("changed", day_text(model.modified) + " UTC");
    show_line("path", model.folder);
    if (found.ok() && found->model.commit == model.commit) show_decoder(found->path);
    for (const HubFile& file : model.files)
      write_line(fmt::format("  {:>9}  {}", human_bytes(file.size), file.path));
  }
  if (!found.ok() && found.error().code == Code::invalid_argument) note(found.error().message);
  return kDone;
}

// Asks for confirmation on the terminal.
bool agreed(const std::string& question) {
  fmt::print(stderr, "{} [y/N] ", question);
  std::fflush(stderr);
  const int answer = std::fgetc(stdin);
  for (int c = answer; c != EOF && c != '\n';) c = std::fgetc(stdin);
  return answer == 'y' || answer == 'Y';
}

// The revisions with the file, or an error.
Result<std::string> file_to_remove(std::vector<PulledModel>& models, const HubName& name) {
  if (name.file.empty()) return std::string();
  std::string path;
  std::vector<PulledModel> having;
  Error missing;
  for (PulledModel& model : models) {
    const Result<Selection> selection = select_files(model.files, name);
    if (!selection.ok()) {
      missing = selection.error();
      continue;
    }
    if (selection->files.size() != 1)
      return Error{Code::unsupported, "that model has several parts; remove them one by one",
                   name.repo, -1};
    path = selection->files.front().path;
    having.push_back(std::move(model));
  }
  if (having.empty()) return missing;
  models = std::move(having);
  return path;
}

int run_rm(const PulledFlags& f) {
  const Result<std::string> root = hub_cache_root();
  if (!root.ok()) return fail(root.error());
  const HubCache cache(*root);
  Result<std::vector<PulledModel>> models = find_revisions(cache, f.name);
  if (!models.ok()) return fail(models.error());
  HubName name = *parse_hub_name(f.name, false);
  name.repo = models->front().repo;
  const Result<std::string> file = file_to_remove(*models, name);
  if (!file.ok()) return fail(file.error());
  const std::string what =
      fmt::format("{}{}{}", name.repo, file->empty() ? "" : ":" + *file,
                  models->size() == 1 ? "" : fmt::format(" ({} revisions)", models->size()));
  if (!f.yes) {
    if (!stdin_is_terminal())
      return fail(kUsage, fmt::format("{} would be removed; say so with --yes", what));
    if (!agreed(fmt::format("remove {}?", what))) return kDone;
  }
  const Result<FileLock> lock = FileLock::try_take(cache.lock_path(name.repo, "loom"), false);
  if (!lock.ok()) return fail(lock.error());
  if (!lock->held())
    return fail(kFailed, fmt::format("{} is being loaded; try again when that is done", name.repo));
  const Result<int64_t> freed = cache.remove(*models, *file);
  if (!freed.ok()) return fail(freed.error());
  note(fmt::format("removed {}; {} are free again", what, human_bytes(*freed)));
  return kDone;
}

}  // namespace

Verb add_list(Command app) {
  auto f = std::make_shared<PulledFlags>();
  const Command verb = app.command("list", "List downloaded models.");
  verb.examples("  loom list\n  loom list --json");
  verb.flag("--json", f->json, "A JSON array instead of a table");
  return {verb, [f] { return run_list(*f); }};
}

Verb add_show(Command app) {
  auto f = std::make_shared<PulledFlags>();
  const Command verb =
      app.command("show", "Show the files, size and location of a downloaded model.");
  verb.examples("  loom show SmolLM2-135M-Instruct\n  loom show hf:ORG/NAME@main --json");
  verb.option("NAME", f->name, "NAME, ORG/NAME or hf:ORG/NAME, with @REVISION").required();
  verb.flag("--json", f->json, "A JSON array of its revisions");
  return {verb, [f] { return run_show(*f); }};
}

Verb add_rm(Command app) {
  auto f = std::make_shared<PulledFlags>();
  const Command verb = app.command("rm", "Remove a downloaded model.");
  verb.examples(
      "  loom rm SmolLM2-135M-Instruct\n"
      "  loom rm hf:ORG/NAME:Q4_K_M --yes\n"
      "Bytes that other revisions or files share stay.");
  verb.option("NAME", f->name, "NAME, ORG/NAME or hf:ORG/NAME, with :FILE and @REVISION")
      .required();
  verb.flag("--yes", f->yes, "Do not ask");
  return {verb, [f] { return run_rm(*f); }};
}

}  // namespace loom::cli
