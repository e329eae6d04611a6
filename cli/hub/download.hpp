// Downloads of models with progress on stderr, for `loom pull` and for model names of other verbs.
#pragma once

#include <cstdint>
#include <string>

#include "fetch.hpp"

namespace loom::cli {

struct DownloadFlags {
  std::string endpoint;  // empty means hub_endpoint()
  int64_t parallel = 4, retries = 5, timeout = 30;
  bool quiet = false;  // no progress and no notes
};

// Errors: those of fetch_model(), hub_cache_root() and checked_endpoint(); unsupported (no network:
// HF_HUB_OFFLINE is set, or the build has no libcurl).
Result<FetchReport> download_model(const HubName& name, const DownloadFlags& flags);

}  // namespace loom::cli
