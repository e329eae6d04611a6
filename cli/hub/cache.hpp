// The folder of pulled models, in the layout of huggingface_hub, shared with it.
//
//   ROOT/models--ORG--NAME/blobs/HASH            the bytes, named by their hash
//   ROOT/models--ORG--NAME/refs/main             the commit that a branch or tag was last seen at
//   ROOT/models--ORG--NAME/snapshots/COMMIT/...  files under their names, as links to blobs
//   ROOT/.locks/models--ORG--NAME/HASH.lock      held (flock) while a blob is loaded
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loom/result.hpp"
#include "name.hpp"
#include "select.hpp"

namespace loom::cli {

// HF_HUB_CACHE, else hub in HF_HOME, else huggingface/hub in XDG_CACHE_HOME or ~/.cache. Errors:
// not_found (none of them is set).
Result<std::string> hub_cache_root();
// HF_TOKEN, else the file HF_TOKEN_PATH, else token in HF_HOME. May be empty.
std::string hub_token();

// A revision of a model in the cache.
struct PulledModel {
  std::string repo, commit;
  std::vector<std::string> refs;  // branches and tags of this commit
  std::string folder;             // the snapshot
  std::vector<HubFile> files;  // those whose blob exists, by path; etag: the blob's name for a link
  int64_t modified = 0;        // seconds since 1970, of the newest file

  int64_t bytes() const;
  // "safetensors", "gguf Q4_K_M, Q8_0", or "other".
  std::string kind() const;
  // safetensors with config.json, which run as a folder.
  bool is_folder_model() const;
};

class HubCache {
 public:
  explicit HubCache(std::string root) : root_(std::move(root)) {}

  const std::string& root() const { return root_; }
  std::string repo_path(const std::string& repo) const { return root_ + "/" + repo_folder(repo); }
  std::string blob_path(const std::string& repo, const std::string& etag) const;
  std::string snapshot_path(const std::string& repo, const std::string& commit) const;
  std::string lock_path(const std::string& repo, const std::string& what) const;

  // All revisions of all models, by name; broken ones are left out.
  std::vector<PulledModel> list() const;
  std::vector<PulledModel> list(const std::string& repo) const;
  std::vector<std::string> repos() const;

  // Removes revisions, or one file of each, and the blobs that nothing else refers to. Returns the
  // freed bytes. Errors: io_error.
  Result<int64_t> remove(const std::vector<PulledModel>& models, const std::string& file) const;

 private:
  std::string root_;
};

// Finds a pulled model by name: "NAME" or "ORG/NAME" in any case, "hf:ORG/NAME", each with :FILE
// and @REVISION. Errors: not_found and invalid_argument (more than one), with advice.
struct FoundModel {
  PulledModel model;
  std::string path;  // the path to open: the snapshot, or a file in it
  std::string note;  // Selection::note
};
Result<std::vector<PulledModel>> find_revisions(const HubCache& cache, const std::string& text);
Result<FoundModel> find_model(const HubCache& cache, const std::string& text);

// An exclusive or shared lock on a file, released on destruction.
class FileLock {
 public:
  // Waits while `go_on` returns true; calls it 10 times a second. Errors: io_error, cancelled.
  template <class F>
  static Result<FileLock> take(const std::string& path, bool shared, const F& go_on) {
    for (bool first = true;; first = false) {
      LOOM_ASSIGN(FileLock lock, try_take(path, shared));
      if (lock.held()) return lock;
      if (!go_on(first)) return Error{Code::cancelled, "another program holds the lock", path, -1};
      rest();
    }
  }
  static Result<FileLock> try_take(const std::string& path, bool shared);
  bool held() const { return descriptor_ >= 0; }
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  FileLock() = default;
  static void rest();
  int descriptor_ = -1;
};

}  // namespace loom::cli
