#include "download.hpp"

#include <mutex>

#include "../shared/console.hpp"
#include "../shared/progress.hpp"
#include "endpoint.hpp"

namespace loom::cli {
namespace {

Result<FetchOptions> fetch_options(const DownloadFlags& f) {
  FetchOptions options;
  LOOM_ASSIGN(options.endpoint, checked_endpoint(f.endpoint.empty() ? hub_endpoint() : f.endpoint));
  options.token = hub_token();
  if (!options.token.empty() && !may_carry_token(options.endpoint)) {
    note("the token stays here: " + options.endpoint + " is not reached over https");
    options.token.clear();
  }
  options.parallel = f.parallel;
  options.retries = f.retries;
  options.stall = f.timeout;
  return options;
}

}  // namespace

Result<FetchReport> download_model(const HubName& name, const DownloadFlags& f) {
  if (!can_fetch()) return fetch_model(HubCache({}), name, {});
  if (is_offline())
    return Error{Code::unsupported, "HF_HUB_OFFLINE is set, so nothing is downloaded; unset it",
                 name.repo, -1};
  LOOM_ASSIGN(const std::string root, hub_cache_root());
  LOOM_ASSIGN(FetchOptions options, fetch_options(f));
  Progress bar(name.repo, "MB", f.quiet);
  std::mutex output_mutex;
  options.progress = [&](int64_t done, int64_t total, int64_t loaded) {
    const std::scoped_lock lock(output_mutex);
    constexpr int64_t kMega = 1'000'000;
    bar.update(done / kMega, total / kMega, loaded / kMega);
  };
  options.note = [&](const std::string& text) {
    if (f.quiet) return;
    const std::scoped_lock lock(output_mutex);
    bar.finish();
    note(text);
  };
  Result<FetchReport> report = fetch_model(HubCache(root), name, options);
  bar.finish();
  if (!report.ok() && report.error().code == Code::cancelled && interrupted() && !f.quiet)
    note("what was loaded stays; the same command goes on from there");
  return report;
}

}  // namespace loom::cli
