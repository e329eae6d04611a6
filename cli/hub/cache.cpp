#include "cache.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "../help/guess.hpp"
#include "../shared/console.hpp"

namespace loom::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFilesListed = 100'000;  // of a snapshot

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string hub_home() {
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home;
  if (const std::string caches = environment("XDG_CACHE_HOME"); !caches.empty())
    return caches + "/huggingface";
  const std::string home = environment("HOME");
  return home.empty() ? std::string() : home + "/.cache/huggingface";
}

std::string trimmed_line(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  size_t first = 0;
  while (first < text.size() && blank(text[first])) ++first;
  return text.substr(first);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Branches and tags of a repository with their commits.
std::vector<std::pair<std::string, std::string>> refs_in(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> refs;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    const Result<std::string> commit = read_file(it->path().string(), 4096);
    if (commit.ok())
      refs.emplace_back(it->path().lexically_relative(folder).string(), trimmed_line(*commit));
  }
  std::sort(refs.begin(), refs.end());
  return refs;
}

void take_files(const std::string& blobs, PulledModel& model) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(model.folder, error), end; !error && it != end;
       it.increment(error)) {
    struct stat status = {};
    if (stat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (model.files.size() == kMaxFilesListed) break;
    HubFile file;
    file.path = it->path().lexically_relative(model.folder).string();
    file.size = static_cast<int64_t>(status.st_size);
    std::error_code ignored;
    const fs::path target = fs::weakly_canonical(it->path(), ignored);
    if (it->is_symlink(ignored) && target.parent_path() == fs::weakly_canonical(blobs, ignored))
      file.etag = target.filename().string();
    model.modified = std::max<int64_t>(model.modified, status.st_mtime);
    model.files.push_back(file);
  }
  std::sort(model.files.begin(), model.files.end(),
            [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
}

Error missing_model(const HubCache& cache, const std::string& text) {
  std::vector<std::string> known;
  for (const std::string& repo : cache.repos()) {
    known.push_back(repo);
    known.push_back(repo.substr(repo.find('/') + 1));
  }
  const Result<HubName> name = parse_hub_name(text, false);
  const std::string bare = name.ok() ? name->str() : text;
  const std::string guess = did_you_mean(bare, known);
  const std::string pull = bare.find('/') == bare.npos ? "hf:ORG/" + bare : "hf:" + bare;
  return Error{Code::not_found,
               fmt::format("no model of that name is here{}; `loom pull {}` brings one, `loom "
                           "list` shows those that are here",
                           guess, pull),
               text, -1};
}

bool is_revision(const PulledModel& model, const std::string& revision) {
  return std::find(model.refs.begin(), model.refs.end(), revision) != model.refs.end() ||
         (revision.size() >= 7 && model.commit.starts_with(revision));
}

Status removed(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return {};
  return Error{Code::io_error, fmt::format("cannot be removed: {}", error.message()), path, -1};
}

}  // namespace

Result<std::string> hub_cache_root() {
  if (std::string root = environment("HF_HUB_CACHE"); !root.empty()) return root;
  const std::string home = hub_home();
  if (!home.empty()) return home + "/hub";
  return Error{Code::not_found, "no place for models: set HF_HOME or HOME", {}, -1};
}

std::string hub_token() {
  if (std::string token = trimmed_line(environment("HF_TOKEN")); !token.empty()) return token;
  std::string path = environment("HF_TOKEN_PATH");
  if (path.empty()) path = hub_home() + "/token";
  const Result<std::string> token = read_file(path, 4096);
  return token.ok() ? trimmed_line(*token) : std::string();
}

int64_t PulledModel::bytes() const {
  int64_t sum = 0;
  for (const HubFile& file : files) sum += file.size;
  return sum;
}

bool PulledModel::is_folder_model() const {
  return std::any_of(files.begin(), files.end(),
                     [](const HubFile& file) { return is_folder_weights(file.path); });
}

std::string PulledModel::kind() const {
  if (is_folder_model()) {
    const bool torch = std::any_of(files.begin(), files.end(),
                                   [](const HubFile& file) { return is_torch_weights(file.path); });
    return torch ? "pytorch" : "safetensors";
  }
  std::set<std::string> words;
  bool gguf = false;
  for (const HubFile& file : files) {
    if (!is_gguf(file.path)) continue;
    gguf = true;
    if (const std::string word = quantisation_of(file.path); !word.empty()) words.insert(word);
  }
  if (!gguf) return "other";
  return words.empty() ? "gguf" : fmt::format("gguf {}", fmt::join(words, ", "));
}

std::string HubCache::blob_path(const std::string& repo, const std::string& etag) const {
  return repo_path(repo) + "/blobs/" + etag;
}
std::string HubCache::snapshot_path(const std::string& repo, const std::string& commit) const {
  return repo_path(repo) + "/snapshots/" + commit;
}
std::string HubCache::lock_path(const std::string& repo, const std::string& what) const {
  return root_ + "/.locks/" + repo_folder(repo) + "/" + what + ".lock";
}

std::vector<std::string> HubCache::repos() const {
  std::vector<std::string> repos;
  for (const std::string& name : names_in(root_))
    if (const std::optional<std::string> repo = repo_of_folder(name)) repos.push_back(*repo);
  return repos;
}

std::vector<PulledModel> HubCache::list(const std::string& repo) const {
  std::vector<PulledModel> models;
  const std::string folder_path = repo_path(repo);
  const auto refs = refs_in(folder_path + "/refs");
  for (const std::string& commit : names_in(folder_path + "/snapshots")) {
    PulledModel model;
    model.repo = repo;
    model.commit = commit;
    model.folder = snapshot_path(repo, commit);
    for (const auto& [name, target] : refs)
      if (target == commit) model.refs.push_back(name);
    take_files(folder_path + "/blobs", model);
    if (!model.files.empty()) models.push_back(std::move(model));
  }
  return models;
}

std::vector<PulledModel> HubCache::list() const {
  std::vector<PulledModel> all;
  for (const std::string& repo : repos())
    for (PulledModel& model : list(repo)) all.push_back(std::move(model));
  return all;
}

Result<int64_t> HubCache::remove(const std::vector<PulledModel>& models,
                                 const std::string& file) const {
  int64_t freed = 0;
  std::set<std::string> touched;
  for (const PulledModel& model : models) {
    touched.insert(model.repo);
    if (!file.empty()) {
      LOOM_TRY(removed(model.folder + "/" + file));
      continue;
    }
    // The name goes first: the remaining files are then not a model.
    for (const std::string& ref : model.refs)
      LOOM_TRY(removed(repo_path(model.repo) + "/refs/" + ref));
    LOOM_TRY(removed(model.folder));
  }
  for (const std::string& repo : touched) {
    std::set<std::string> used;
    const std::vector<PulledModel> left = list(repo);
    for (const PulledModel& model : left)
      for (const HubFile& kept : model.files) used.insert(kept.etag);
    const std::string blobs = repo_path(repo) + "/blobs";
    for (const std::string& name : names_in(blobs)) {
      if (used.count(name) != 0) continue;
      std::error_code ignored;
      const auto size = fs::file_size(blobs + "/" + name, ignored);
      LOOM_TRY(removed(blobs + "/" + name));
      if (!ignored) freed += static_cast<int64_t>(size);
    }
    if (left.empty()) LOOM_TRY(removed(repo_path(repo)));
  }
  return freed;
}

Result<std::vector<PulledModel>> find_revisions(const HubCache& cache, const std::string& text) {
  LOOM_ASSIGN(const HubName name, parse_hub_name(text, false));
  const std::string requested = lower(name.repo);
  std::vector<std::string> repos;
  for (const std::string& repo : cache.repos()) {
    const std::string small = lower(repo);
    const bool same = small == requested || (requested.find('/') == requested.npos &&
                                             small.substr(small.find('/') + 1) == requested);
    if (same && !cache.list(repo).empty()) repos.push_back(repo);
  }
  if (repos.empty()) return missing_model(cache, text);
  if (repos.size() > 1)
    return Error{
        Code::invalid_argument,
        fmt::format("{} models have that name; say which: {}", repos.size(), list_of(repos)), text,
        -1};
  std::vector<PulledModel> found;
  for (PulledModel& model : cache.list(repos.front()))
    if (name.revision.empty() || is_revision(model, name.revision))
      found.push_back(std::move(model));
  if (found.empty())
    return Error{Code::not_found,
                 fmt::format("that revision is not here; `loom pull hf:{}@{}` brings it",
                             repos.front(), name.revision),
                 text, -1};
  return found;
}

Result<FoundModel> find_model(const HubCache& cache, const std::string& text) {
  LOOM_ASSIGN(const HubName name, parse_hub_name(text, false));
  LOOM_ASSIGN(const std::vector<PulledModel> revisions, find_revisions(cache, text));
  const PulledModel* best = &revisions.front();
  for (const PulledModel& model : revisions) {
    const bool main = is_revision(model, "main"), best_main = is_revision(*best, "main");
    if (main != best_main ? main : model.modified > best->modified) best = &model;
  }
  HubName here = name;
  here.repo = best->repo;
  FoundModel found{*best, best->folder, {}};
  if (here.file.empty() && best->is_folder_model()) return found;
  LOOM_ASSIGN(const Selection selection, select_files(best->files, here));
  found.path = best->folder + "/" + selection.files.front().path;
  found.note = selection.note;
  return found;
}

// ---- locks
// ----------------------------------------------------------------------------------------

Result<FileLock> FileLock::try_take(const std::string& path, bool shared) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  FileLock lock;
  lock.descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock.descriptor_ < 0)
    return Error{Code::io_error, fmt::format("cannot be made: {}", std::strerror(errno)), path, -1};
  if (flock(lock.descriptor_, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return lock;
  const int why = errno;
  close(lock.descriptor_);
  lock.descriptor_ = -1;
  if (why == EWOULDBLOCK || why == EINTR) return lock;
  return Error{Code::io_error, fmt::format("cannot be locked: {}", std::strerror(why)), path, -1};
}

void FileLock::rest() {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace loom::cli
