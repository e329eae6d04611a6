// A model from a hub into the cache: the list of its files, then those that are missing, then its
// name. Whatever ends it in between, what is there stays good, and the same call goes on.
#pragma once

#include <cstdint>
#include <string>

#include "cache.hpp"
#include "retry.hpp"

namespace loom::cli {

struct FetchReport {
  std::string commit;
  std::string path;    // the snapshot, or the file in it
  int64_t files = 0;   // that the model has here
  int64_t bytes = 0;   // of them
  int64_t loaded = 0;  // bytes that came over the network
};

// false: a build without libcurl, in which fetch_model() gives Code::unsupported.
bool can_fetch();

// Errors: those of select_files(), refusal() and Transfer; bad_file (a hub that answers nonsense),
// io_error (no room on the disk).
Result<FetchReport> fetch_model(const HubCache& cache, const HubName& name,
                                const FetchOptions& options);

}  // namespace loom::cli
