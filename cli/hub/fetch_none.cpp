// In place of fetch.cpp in a build without libcurl.
#include "fetch.hpp"

namespace loom::cli {

bool can_fetch() {
  return false;
}

Result<FetchReport> fetch_model(const HubCache&, const HubName& name, const FetchOptions&) {
  return Error{Code::unsupported,
               "this build of loom cannot load over the network; build it with libcurl and OpenSSL "
               "(Debian: libcurl4-openssl-dev, libssl-dev), or bring the model another way",
               name.repo, -1};
}

}  // namespace loom::cli
