// The transfer of one file from a hub into the cache. It resumes an earlier attempt, checks the
// hash, and gives the file its name only when it is complete.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "cache.hpp"
#include "digest.hpp"
#include "retry.hpp"

namespace loom::cli {

// State shared by all transfers of one pull.
struct TransferContext {
  const HubCache* cache;
  const HubName* name;
  const FetchOptions* options;
  std::string commit;
  std::atomic<int64_t> here{0};    // bytes of all files on disk
  std::atomic<int64_t> loaded{0};  // those that came over the network
  std::atomic<bool> stop{false};   // another transfer failed
};

class Transfer {
 public:
  Transfer(TransferContext& all, const HubFile& file, HttpClient& http);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Errors: those of refusal(); bad_file (another size or hash than the hub lists; nothing is
  // kept), io_error (the disk), cancelled (existing bytes stay for a resume).
  Status run();

 private:
  Status open_partial();
  Status read_partial();
  Status load();
  Status attempt(Patience& patience);
  bool begin(const HttpReply& reply);
  bool begin_at(int64_t start);
  bool write(std::string_view bytes);
  Status start_anew();
  Status finish();
  // The size differs from the hub's list: drops all bytes.
  void refuse(const std::string& what);
  Error disk_error(const std::string& what) const;
  void count(int64_t bytes);
  std::string url() const;

  TransferContext& all_;
  const HubFile& file_;
  HttpClient& http_;
  std::string blob_, partial_, tag_path_;
  int descriptor_ = -1;
  int64_t have_ = 0;      // bytes in the partial file, all in digest_
  int64_t counted_ = 0;   // those counted in all_.here
  int64_t most_ = 0;      // the maximum that any attempt reached
  bool resumed_ = false;  // some are from an earlier run
  std::optional<Digest> digest_;
  std::string restart_;          // why this attempt must restart; empty if it need not
  std::string tag_;              // ETag of the host that sent the bytes, for If-Range
  std::optional<Error> failed_;  // a permanent error of an attempt
};

// The ETag without W/ and quotes.
std::string bare_etag(std::string_view etag);

}  // namespace loom::cli
