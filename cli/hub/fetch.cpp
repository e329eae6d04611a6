#include "fetch.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "../shared/console.hpp"
#include "../shared/json_value.hpp"
#include "transfer.hpp"

namespace loom::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxOfList = size_t{64} << 20;  // bytes of an answer
constexpr size_t kMaxFilesOfModel = 10'000;
constexpr int64_t kLargestFile = int64_t{1} << 46;
constexpr const char* kTheList = "the list of files";

Error nonsense(const HubName& name, const std::string& what) {
  return Error{Code::bad_file, "the hub answers nonsense: " + what, name.repo, -1};
}

Error cache_error(const std::string& what, const std::error_code& why, const std::string& path) {
  return Error{Code::io_error, fmt::format("{}: {}", what, why.message()), path, -1};
}

std::unique_ptr<HttpClient> client_of(const FetchOptions& options) {
  if (options.client) return options.client();
  return std::make_unique<Http>(HttpOptions{options.token, options.stall});
}

// The body of a reply that must be successful.
Result<std::string> get_text(HttpClient& http, const std::string& url, const HubName& name,
                             const FetchOptions& options) {
  Patience patience(options.retries);
  for (;;) {
    std::string body;
    HttpRequest request;
    request.url = url;
    request.write = [&](std::string_view bytes) {
      body.append(bytes);
      return body.size() <= kMaxOfList;
    };
    const HttpReply reply = http.send(request);
    if (body.size() > kMaxOfList) return nonsense(name, "its list of files has no end");
    if (reply.ok()) return body;
    LOOM_TRY(patience.wait(reply, name, options, kTheList, [] { return false; }));
  }
}

struct Listing {
  std::string commit;
  std::vector<HubFile> files;
};

Result<HubFile> listed_file(const JsonValue& entry, const HubName& name) {
  HubFile file;
  file.path = entry.member_text("rfilename");
  if (!safe_relative_path(file.path))
    return nonsense(name, fmt::format("a file named '{}'", printable(file.path)));
  const JsonValue* lfs = entry.find("lfs");
  file.etag = lfs != nullptr ? lfs->member_text("sha256") : std::string();
  if (file.etag.empty() && lfs != nullptr) file.etag = lfs->member_text("oid");
  if (lfs == nullptr || file.etag.empty()) file.etag = entry.member_text("blobId");
  if (const JsonValue* size = entry.find("size")) file.size = size->integer().value_or(-1);
  return file;
}

Result<Listing> list_files(HttpClient& http, const HubName& name, const FetchOptions& options) {
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", options.endpoint,
                                      name.repo, Http::escape(name.wanted_revision(), false));
  LOOM_ASSIGN(const std::string text, get_text(http, url, name, options));
  LOOM_ASSIGN(const JsonValue json, JsonValue::parse(text, url));
  Listing listing;
  listing.commit = json.member_text("sha");
  if (!is_sha1_hex(listing.commit)) return nonsense(name, "its commit is not a hash");
  const JsonValue* siblings = json.find("siblings");
  if (siblings == nullptr || !siblings->is_array()) return nonsense(name, "no list of files");
  for (const JsonValue& entry : siblings->elements()) {
    LOOM_ASSIGN(HubFile file, listed_file(entry, name));
    listing.files.push_back(std::move(file));
  }
  return listing;
}

// Other hubs may list only names: size and hash are then in the headers of each file.
Status complete_file(HttpClient& http, const HubName& name, const FetchOptions& options,
                     const std::string& commit, HubFile& file) {
  Patience patience(options.retries);
  while (file.size < 0 || file.etag.empty()) {
    HttpRequest request;
    request.head = true;
    request.url = fmt::format("{}/{}/resolve/{}/{}", options.endpoint, name.repo, commit,
                              Http::escape(file.path, true));
    const HttpReply reply = http.send(request);
    if (!reply.ok()) {
      LOOM_TRY(patience.wait(reply, name, options, file.path, [] { return false; }));
      continue;
    }
    const auto header = [&](const char* linked, const char* plain) {
      const auto found = reply.all_headers.find(linked);
      return found != reply.all_headers.end() ? found->second : reply.header(plain);
    };
    file.etag = bare_etag(header("x-linked-etag", "etag"));
    const std::string size = header("x-linked-size", "content-length");
    file.size = size.empty() || size.size() > 15 ||
                        size.find_first_not_of("0123456789") != std::string::npos
                    ? -1
                    : std::stoll(size);
    if (file.size < 0 || file.etag.empty())
      return nonsense(name, "no size or no hash of " + file.path);
  }
  return {};
}

Status check_files(const HubName& name, const std::vector<HubFile>& files) {
  if (files.size() > kMaxFilesOfModel)
    return nonsense(name, fmt::format("a model of {} files", files.size()));
  for (const HubFile& file : files) {
    if (!is_sha1_hex(file.etag) && !is_sha256_hex(file.etag))
      return nonsense(name, fmt::format("{} has no hash that this program knows", file.path));
    if (file.size > kLargestFile)
      return nonsense(name, fmt::format("{} has {} bytes", file.path, file.size));
  }
  return {};
}

int64_t bytes_of(const std::vector<HubFile>& files) {
  int64_t sum = 0;
  for (const HubFile& file : files) sum += file.size;
  return sum;
}

// Checks the disk space for missing files.
Status check_room(const HubCache& cache, const HubName& name, const std::vector<HubFile>& files) {
  int64_t missing = 0;
  for (const HubFile& file : files) {
    std::error_code none;
    const std::string blob = cache.blob_path(name.repo, file.etag);
    if (fs::exists(blob, none)) continue;
    const auto part = fs::file_size(blob + ".incomplete", none);
    missing += std::max<int64_t>(0, file.size - (none ? 0 : static_cast<int64_t>(part)));
  }
  std::error_code error;
  const fs::space_info space = fs::space(cache.repo_path(name.repo), error);
  if (error || static_cast<uint64_t>(missing) <= space.available) return {};
  return Error{
      Code::io_error,
      fmt::format("{} are to be loaded, and {} are free; make room, or set HF_HOME to a "
                  "folder of another disk",
                  human_bytes(missing), human_bytes(static_cast<int64_t>(space.available))),
      cache.root(), -1};
}

// Loads files on several threads, the largest first.
class Loader {
 public:
  Loader(TransferContext& all, std::vector<HubFile> files) : all_(all), files_(std::move(files)) {
    std::stable_sort(files_.begin(), files_.end(),
                     [](const HubFile& a, const HubFile& b) { return a.size > b.size; });
  }

  Status run() {
    const auto count = std::min<size_t>(files_.size(), static_cast<size_t>(all_.options->parallel));
    std::vector<std::thread> threads;
    left_ = count;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    std::unique_lock lock(mutex_);
    while (left_ > 0) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      lock.unlock();
      if (all_.options->progress) all_.options->progress(all_.here, bytes_of(files_), all_.loaded);
      lock.lock();
    }
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    if (interrupted()) return interrupted_error();
    if (first_error_) return *first_error_;
    return {};
  }

 private:
  void work() {
    const std::unique_ptr<HttpClient> http = client_of(*all_.options);
    for (;;) {
      size_t mine = 0;
      {
        const std::scoped_lock lock(mutex_);
        if (next_ == files_.size() || all_.stop) break;
        mine = next_++;
      }
      const Status status = Transfer(all_, files_[mine], *http).run();
      if (status.ok()) continue;
      const std::scoped_lock lock(mutex_);
      if (!first_error_) first_error_ = status.error();
      all_.stop = true;
    }
    const std::scoped_lock lock(mutex_);
    --left_;
    changed_.notify_one();
  }

  TransferContext& all_;
  std::vector<HubFile> files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0, left_ = 0;
  std::optional<Error> first_error_;
};

// Replaces an existing link atomically.
Status link_file(const std::string& folder, const HubFile& file) {
  const fs::path link = fs::path(folder) / file.path;
  std::error_code error;
  fs::create_directories(link.parent_path(), error);
  if (error) return cache_error("cannot be made", error, link.parent_path().string());
  std::string target = "../../blobs/" + file.etag;
  for (const char c : file.path)
    if (c == '/') target = "../" + target;
  if (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target) return {};
  const fs::path fresh = link.string() + fmt::format(".{}.new", getpid());
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (!error) return {};
  std::error_code ignored;
  fs::remove(fresh, ignored);
  return cache_error("cannot be linked", error, link.string());
}

Status give_names(const HubCache& cache, const HubName& name, const std::string& commit,
                  const std::vector<HubFile>& files) {
  const std::string folder = cache.snapshot_path(name.repo, commit);
  for (const HubFile& file : files) LOOM_TRY(link_file(folder, file));
  if (name.wanted_revision() == commit) return {};
  const std::string ref = cache.repo_path(name.repo) + "/refs/" + name.wanted_revision();
  std::error_code error;
  fs::create_directories(fs::path(ref).parent_path(), error);
  if (error) return cache_error("cannot be made", error, ref);
  return write_file(ref, commit);
}

}  // namespace

bool can_fetch() {
  return true;
}

Result<FetchReport> fetch_model(const HubCache& cache, const HubName& name,
                                const FetchOptions& options) {
  const std::unique_ptr<HttpClient> client = client_of(options);
  HttpClient& http = *client;
  LOOM_ASSIGN(const Listing listing, list_files(http, name, options));
  LOOM_ASSIGN(Selection selection, select_files(listing.files, name));
  std::vector<HubFile>& files = selection.files;
  if (!selection.note.empty() && options.note) options.note(selection.note);
  if (files.size() <= kMaxFilesOfModel)
    for (HubFile& file : files) LOOM_TRY(complete_file(http, name, options, listing.commit, file));
  LOOM_TRY(check_files(name, files));
  std::error_code error;
  fs::create_directories(cache.repo_path(name.repo) + "/blobs", error);
  if (error) return cache_error("cannot be made", error, cache.repo_path(name.repo));
  LOOM_TRY(check_room(cache, name, files));
  // Keeps `loom rm` out meanwhile.
  LOOM_ASSIGN(const FileLock in_use, FileLock::take(cache.lock_path(name.repo, "loom"), true,
                                                    [](bool) { return !interrupted(); }));
  fs::create_directories(cache.repo_path(name.repo) + "/blobs", error);
  TransferContext all{&cache, &name, &options, listing.commit, {}, {}, {}};
  LOOM_TRY(Loader(all, files).run());
  LOOM_TRY(give_names(cache, name, listing.commit, files));
  FetchReport report;
  report.commit = listing.commit;
  report.files = static_cast<int64_t>(files.size());
  report.bytes = bytes_of(files);
  report.loaded = all.loaded;
  report.path = cache.snapshot_path(name.repo, listing.commit);
  if (!is_folder_weights(files.front().path)) report.path += "/" + files.front().path;
  return report;
}

}  // namespace loom::cli
