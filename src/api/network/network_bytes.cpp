#include "api/engine/impl.hpp"

namespace loom::core {

int64_t owned_bytes(const Network& network) {
  int64_t bytes = 0;
  for (const Param& p : network.params()) bytes += p.memory.size();
  return bytes;
}

int64_t mapped_bytes(const Network& network) {
  int64_t bytes = 0;
  for (const Param& p : network.params()) {
    if (p.memory.size() == 0 && !p.tensor.empty()) bytes += p.bytes();
  }
  return bytes;
}

}  // namespace loom::core
