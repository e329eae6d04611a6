#include "transfer.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../shared/console.hpp"

namespace loom::cli {
namespace {

// Returns -1 if there is no such file.
int64_t size_on_disk(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return -1;
  return static_cast<int64_t>(status.st_size);
}

int64_t number_in(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "bytes 100-199/200" -> 100; -1 for anything else.
int64_t range_start(const std::string& header) {
  return header.starts_with("bytes ") ? number_in(std::string_view(header).substr(6)) : -1;
}

// "bytes 100-199/200" -> 200; -1 if it is absent.
int64_t range_total(const std::string& header) {
  const size_t slash = header.find('/');
  return slash == header.npos ? -1 : number_in(std::string_view(header).substr(slash + 1));
}

}  // namespace

std::string bare_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

Transfer::Transfer(TransferContext& all, const HubFile& file, HttpClient& http)
    : all_(all), file_(file), http_(http) {
  blob_ = all.cache->blob_path(all.name->repo, file.etag);
  partial_ = blob_ + ".incomplete";
  tag_path_ = blob_ + ".etag.incomplete";
}

Transfer::~Transfer() {
  if (descriptor_ >= 0) close(descriptor_);
}

Error Transfer::disk_error(const std::string& what) const {
  return Error{Code::io_error, fmt::format("{}: {}", what, std::strerror(errno)), partial_, -1};
}

void Transfer::refuse(const std::string& what) {
  unlink(partial_.c_str());
  unlink(tag_path_.c_str());
  failed_ = Error{Code::bad_file, what, all_.name->repo, -1};
}

void Transfer::count(int64_t bytes) {
  counted_ += bytes;
  all_.here += bytes;
}

std::string Transfer::url() const {
  return fmt::format("{}/{}/resolve/{}/{}", all_.options->endpoint, all_.name->repo, all_.commit,
                     Http::escape(file_.path, true));
}

Status Transfer::run() {
  if (size_on_disk(blob_) == file_.size) {
    all_.here += file_.size;
    return {};
  }
  const auto go_on = [this](bool first) {
    if (first && all_.options->note)
      all_.options->note(fmt::format("{}: another program loads it; waiting", file_.path));
    return !interrupted() && !all_.stop;
  };
  LOOM_ASSIGN(const FileLock lock,
              FileLock::take(all_.cache->lock_path(all_.name->repo, file_.etag), false, go_on));
  if (size_on_disk(blob_) == file_.size) {  // the other program finished it
    all_.here += file_.size;
    return {};
  }
  LOOM_TRY(open_partial());
  return load();
}

Status Transfer::open_partial() {
  // Links are not followed: they could point to another user's file.
  descriptor_ = open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor_ < 0) return disk_error("cannot be made");
  have_ = size_on_disk(partial_);
  LOOM_ASSIGN(digest_, Digest::for_etag(file_.etag, file_.size));
  if (have_ > file_.size) return start_anew();
  resumed_ = have_ > 0;
  if (const Result<std::string> tag = read_file(tag_path_, 1024); tag.ok()) tag_ = *tag;
  return read_partial();
}

// Adds the bytes of an earlier run to the hash.
Status Transfer::read_partial() {
  std::vector<char> block(size_t{1} << 20);
  for (int64_t at = 0; at < have_;) {
    if (interrupted() || all_.stop) return interrupted_error();
    const ssize_t got = pread(descriptor_, block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return disk_error("cannot be read");
    digest_->add({block.data(), static_cast<size_t>(got)});
    at += got;
    count(got);
  }
  return {};
}

Status Transfer::start_anew() {
  count(-counted_);
  have_ = 0;
  resumed_ = false;
  tag_.clear();
  if (ftruncate(descriptor_, 0) != 0) return disk_error("cannot be cut");
  LOOM_ASSIGN(digest_, Digest::for_etag(file_.etag, file_.size));
  return {};
}

Status Transfer::load() {
  Patience patience(all_.options->retries);
  for (;;) {
    while (have_ < file_.size) LOOM_TRY(attempt(patience));
    const bool was_resumed = resumed_;
    Status status = finish();
    if (status.ok() || status.error().code != Code::bad_file || !was_resumed) return status;
    // The start may be from another program that was interrupted: retries from zero.
    LOOM_TRY(start_anew());
  }
}

Status Transfer::attempt(Patience& patience) {
  if (interrupted() || all_.stop) return interrupted_error();
  HttpRequest request;
  request.url = url();
  request.from = have_;
  request.if_range = tag_;
  request.begin = [this](const HttpReply& reply) { return begin(reply); };
  request.write = [this](std::string_view bytes) { return write(bytes); };
  const int64_t before = have_;
  restart_.clear();
  const HttpReply reply = http_.send(request);
  if (failed_) return *failed_;
  if (interrupted() || all_.stop) return interrupted_error();
  if (have_ == file_.size) return {};
  // Only a new maximum is progress; a host that always disconnects at the same place would
  // otherwise be retried forever.
  if (have_ > most_) patience.forget();
  most_ = std::max(most_, have_);
  if (reply.status == 416 && before > 0) {
    restart_ = fmt::format("the hub has nothing from byte {} on", before);
    LOOM_TRY(start_anew());
  }
  HttpReply cut = reply;
  if (!restart_.empty()) {
    cut.failure = restart_ + ", so it is loaded from the beginning";
  } else if (reply.ok()) {
    cut.failure = "the connection ended too early";
  }
  return patience.wait(cut, *all_.name, *all_.options, file_.path,
                       [this] { return all_.stop.load(); });
}

// The reply starts at another byte than requested: retries from zero.
bool Transfer::begin_at(int64_t start) {
  if (start == have_) return true;
  restart_ = fmt::format("the hub was asked from byte {} on and sends from {}", have_,
                         start < 0 ? "an unknown one" : std::to_string(start));
  if (Status status = start_anew(); !status.ok()) failed_ = status.error();
  return false;
}

// Decides how to use the body.
bool Transfer::begin(const HttpReply& reply) {
  if (reply.status == 206) {
    const std::string range = reply.header("content-range");
    const int64_t total = range_total(range);
    if (total >= 0 && total != file_.size)
      refuse(fmt::format("{} has {} bytes, but the hub lists {}", file_.path, total, file_.size));
    if (failed_) return false;
    return begin_at(range_start(range));
  }
  if (reply.status != 200) return false;
  if (have_ > 0) {  // the host has another file now, or no ranges
    if (Status status = start_anew(); !status.ok()) failed_ = status.error();
  }
  const std::string length = reply.header("content-length");
  if (!failed_ && !length.empty() && number_in(length) != file_.size)
    refuse(fmt::format("{} has {} bytes, but the hub lists {}", file_.path, length, file_.size));
  if (failed_) return false;
  const std::string tag = reply.header("etag");
  if (!tag.empty() && tag.front() == '"' && tag.size() < 1024) {  // a weak one is not reliable
    tag_ = tag;
    static_cast<void>(write_file(tag_path_, tag));
  }
  return true;
}

bool Transfer::write(std::string_view bytes) {
  if (all_.stop) return false;
  if (static_cast<int64_t>(bytes.size()) > file_.size - have_) {
    refuse(fmt::format("{} has more than the {} bytes that the hub lists", file_.path, file_.size));
    return false;
  }
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t put =
        pwrite(descriptor_, bytes.data() + at, bytes.size() - at, have_ + static_cast<int64_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      failed_ = disk_error("cannot be written");
      return false;
    }
    at += static_cast<size_t>(put);
  }
  digest_->add(bytes);
  have_ += static_cast<int64_t>(bytes.size());
  count(static_cast<int64_t>(bytes.size()));
  all_.loaded += static_cast<int64_t>(bytes.size());
  return true;
}

Status Transfer::finish() {
  const std::string hash = digest_->finish();
  if (hash != file_.etag) {
    unlink(tag_path_.c_str());
    if (!resumed_) unlink(partial_.c_str());
    return Error{Code::bad_file,
                 fmt::format("{} came with another hash than the hub lists ({} instead of {}); "
                             "nothing of it is kept",
                             file_.path, hash.substr(0, 12), file_.etag.substr(0, 12)),
                 all_.name->repo, -1};
  }
  if (fsync(descriptor_) != 0) return disk_error("cannot be written");
  if (std::rename(partial_.c_str(), blob_.c_str()) != 0) return disk_error("cannot be renamed");
  unlink(tag_path_.c_str());
  return {};
}

}  // namespace loom::cli
