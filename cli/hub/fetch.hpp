// Loads a model from a hub into the cache: the list of its files, then missing files, then its
// name. After an interruption the loaded parts stay valid, and the same call resumes.
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
  int64_t loaded = 0;  // bytes loaded over the network
};

// false in a build without libcurl, where fetch_model() returns Code::unsupported.
bool can_fetch();

// Errors: those of select_files(), refusal() and Transfer; bad_file (invalid replies of the hub),
// io_error (no space on the disk).
Result<FetchReport> fetch_model(const HubCache& cache, const HubName& name,
                                const FetchOptions& options);

}  // namespace loom::cli
