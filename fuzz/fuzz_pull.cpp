// Any replies of a hub to `loom pull`: its list of files, redirects, ranges, retries and a second
// run that resumes. Three properties always hold. No file is written outside the cache, the name of
// a blob is its hash, and the token goes to the hub alone. Most inputs take replies from memory;
// some go through libcurl, over socket pairs.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "../cli/hub/fetch.hpp"
#include "../cli/hub/transfer.hpp"
#include "../cli/shared/console.hpp"
#include "check.hpp"
#include "loom/files.hpp"
#include "peer.hpp"

using namespace loom::cli;
using loom::Result;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNextReply = "\n----\n";  // between replies in an input
constexpr std::string_view kHub = "127.0.0.1:1";
constexpr std::string_view kToken = "token-of-the-fuzzer";

std::vector<std::string_view> replies_in(std::string_view text) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t end = text.find(kNextReply);
    out.push_back(text.substr(0, end));
    if (end == text.npos) return out;
    text.remove_prefix(end + kNextReply.size());
  }
}

// The replies of an input, each returned once.
struct Replies {
  std::vector<std::string_view> all;
  size_t next = 0;
  uint8_t seed = 0;
  std::optional<std::string_view> take() {
    return next < all.size() ? std::optional(all[next++]) : std::nullopt;
  }
};

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

int64_t number(std::string_view text, int64_t otherwise) {
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size() && value >= 0 ? value
                                                                                 : otherwise;
}

// ---- replies from memory ------------------------------------------------------------------------

class Canned final : public HttpClient {
 public:
  explicit Canned(Replies& replies) : replies_(replies) {}
  HttpReply send(const HttpRequest& request) override {
    HttpReply reply;
    std::string_view body;
    constexpr int kMaxRedirects = 10;
    for (int i = 0;; ++i) {
      const std::optional<std::string_view> text = replies_.take();
      if (!text || i > kMaxRedirects) {
        reply.failure = "no reply";
        return reply;
      }
      body = take_head(*text, reply);
      if (reply.status / 100 != 3 || reply.header("location").empty()) break;
    }
    reply.retry_after = number(reply.header("retry-after"), 0);
    pass(request, body, reply);
    return reply;
  }

 private:
  // The body, after the empty line.
  static std::string_view take_head(std::string_view text, HttpReply& reply) {
    reply.headers.clear();
    reply.status = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = trim(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.empty()) break;
      if (line.starts_with("HTTP/")) {
        const size_t space = std::min(line.find(' '), line.size());
        reply.status = number(line.substr(std::min(space + 1, line.size())).substr(0, 3), 0);
      } else if (const size_t colon = line.find(':'); colon != line.npos) {
        const std::string name = lower(line.substr(0, colon));
        reply.headers[name] = std::string(trim(line.substr(colon + 1)));
        reply.all_headers[name] = reply.headers[name];
      }
    }
    return text;
  }

  void pass(const HttpRequest& request, std::string_view body, HttpReply& reply) const {
    if (reply.status == 0) {
      reply.failure = "no HTTP";
      return;
    }
    const int64_t length = number(reply.header("content-length"), -1);
    const bool cut = !request.head && length > static_cast<int64_t>(body.size());
    if (length >= 0) body = body.substr(0, static_cast<size_t>(length));
    if (request.begin && !request.begin(reply)) return;
    if (!request.head && request.write && !body.empty()) {
      for (const std::string_view piece : loom_fuzz::pieces(body, replies_.seed))
        if (!request.write(piece)) return;
    }
    if (cut) reply.failure = "the reply ended early";
  }

  Replies& replies_;
};

// ---- replies through libcurl --------------------------------------------------------------------

// The hub's ends of the connections of an input.
class Hub {
 public:
  explicit Hub(Replies& replies) : replies_(replies) {}
  int connect() {
    const std::optional<std::string_view> text = replies_.take();
    if (!text) return -1;
    peers_.push_back(std::make_unique<loom_fuzz::Peer>());
    peers_.back()->write(*text);
    peers_.back()->end_writing();
    return peers_.back()->theirs();
  }
  // A request names its host in its first line, as for proxies.
  void check() {
    for (const auto& peer : peers_) {
      std::string asked;
      while (peer->read(asked)) continue;
      for (size_t at = 0; at < asked.size();) {
        const size_t end = std::min(asked.find("\r\n\r\n", at), asked.size());
        const std::string_view one = std::string_view(asked).substr(at, end - at);
        at = end + 4;
        const size_t scheme = one.find("://");
        const bool ours = scheme != one.npos && one.substr(scheme + 3).starts_with(kHub) &&
                          one.substr(scheme + 3 + kHub.size(), 1) == "/";
        CHECK(ours || one.find(kToken) == one.npos);
      }
    }
  }

 private:
  Replies& replies_;
  std::vector<std::unique_ptr<loom_fuzz::Peer>> peers_;
};

// ---- files on the disk --------------------------------------------------------------------------

// A folder of this process, in memory if the system supports it.
struct Folder {
  Folder() {
    std::error_code none;
    const bool memory = fs::is_directory("/dev/shm", none);
    const fs::path base = memory ? fs::path("/dev/shm") : fs::temp_directory_path();
    path = (base / ("loom_fuzz_pull_" + std::to_string(::getpid()))).string();
    fs::remove_all(path, none);
    fs::create_directories(path, none);
    // No host name of a hub is looked up, for any redirect.
    ::setenv("http_proxy", "http://127.0.0.1:1", 1);
    ::setenv("https_proxy", "http://127.0.0.1:1", 1);
  }
  ~Folder() {
    std::error_code none;
    fs::remove_all(path, none);
  }
  std::string path;
};

const std::string& folder() {
  static const Folder one;
  return one.path;
}

void check_blob(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.ends_with(".incomplete")) return;
  CHECK(is_sha1_hex(name) || is_sha256_hex(name));
  const Result<std::string> bytes = loom::read_file(file.string());
  CHECK(bytes.ok());
  Result<Digest> digest = Digest::for_etag(name, static_cast<int64_t>(bytes->size()));
  CHECK(digest.ok());
  digest->add(*bytes);
  CHECK(digest->finish() == name);
}

void check_link(const fs::path& link, const fs::path& blobs) {
  std::error_code failed;
  const fs::path target = fs::canonical(link, failed);
  CHECK(!failed && target.parent_path() == blobs);
}

void check_folder(const HubCache& cache, const HubName& name) {
  std::error_code none;
  for (const auto& one : fs::directory_iterator(folder(), none)) CHECK(one.path() == cache.root());
  const fs::path repo_folder = cache.repo_path(name.repo);
  for (const auto& one : fs::directory_iterator(cache.root(), none))
    CHECK(one.path() == repo_folder || one.path().filename() == ".locks");
  const fs::path blobs = fs::canonical(repo_folder / "blobs", none);
  for (const auto& one : fs::directory_iterator(repo_folder / "blobs", none))
    check_blob(one.path());
  for (const auto& one : fs::recursive_directory_iterator(repo_folder / "snapshots", none)) {
    if (one.is_symlink()) {
      check_link(one.path(), blobs);
    } else {
      CHECK(one.is_directory());
    }
  }
}

void run(const HubCache& cache, const HubName& name, const FetchOptions& options) {
  const Result<FetchReport> report = fetch_model(cache, name, options);
  check_folder(cache, name);
  if (!report.ok()) {
    CHECK(!report.error().message.empty());
    return;
  }
  CHECK(fs::exists(report->path));
  CHECK(report->path.starts_with(cache.snapshot_path(name.repo, report->commit)));
  CHECK(report->files > 0 && report->bytes >= 0 && report->loaded >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint8_t mode = data[0];
  Replies replies{replies_in({reinterpret_cast<const char*>(data) + 2, size - 2}), 0, data[1]};
  const HubCache cache(folder() + "/hub");
  HubName name{"org/model", (mode & 0x10) != 0 ? "Q4_K_M" : "", (mode & 0x20) != 0 ? "v1" : ""};
  Hub hub(replies);
  FetchOptions options;
  options.endpoint = "http://" + std::string(kHub);
  options.token = kToken;
  options.parallel = 1;
  options.retries = 2;
  options.sleep = [](std::chrono::milliseconds) {};
  options.client = [&]() -> std::unique_ptr<HttpClient> {
    if (mode % 16 != 0) return std::make_unique<Canned>(replies);
    return std::make_unique<Http>(
        HttpOptions{options.token, options.stall, [&] { return hub.connect(); }});
  };
  run(cache, name, options);
  // A second run resumes from the files of the first.
  if ((mode & 0x40) != 0) run(cache, name, options);
  hub.check();
  std::error_code none;
  fs::remove_all(cache.root(), none);
  return 0;
}
