// Adapters of networks.
#include "capi/options/read_options.hpp"
#include "capi/reading.hpp"
#include "capi/support.hpp"

using namespace loom;
using namespace loom::capi;

extern "C" {

loom_status loom_network_with_adapter(const loom_network* network,
                                      const loom_adapter_options* options, loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const loom_adapter_options from, options_of(options, "loom_adapter_options"));
    LOOM_ASSIGN(const AdapterOptions how, read_options(from));
    LOOM_ASSIGN(Network made, object->with_adapter(how));
    return give(out, std::move(made));
  });
}

loom_status loom_network_merge_adapters(const loom_network* network, loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(Network merged, object->merge_adapters());
    return give(out, std::move(merged));
  });
}

}  // extern "C"
