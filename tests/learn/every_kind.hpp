// A small network around every layer kind, for tests that run over all of them.
#pragma once

#include "learn/train_rig.hpp"

namespace loom::core::test {

struct KindCase {
  std::string name;
  GridSpec grid;
  Shape input;
};

inline std::ostream& operator<<(std::ostream& out, const KindCase& c) {
  return out << c.name;
}

inline LayerConfig dense(int64_t in, int64_t out, const char* activation = "linear") {
  return layer(LayerKind::dense, {{"in", in}, {"out", out}, {"activation", activation}});
}

// One case per row of registry.def, its example; a test counts them.
inline std::vector<KindCase> every_kind() {
  std::vector<KindCase> all;
  for (const KindNetwork& k : kind_networks()) {
    all.push_back({std::string(k.kind), k.network.grid, k.network.input.after(k.batch)});
  }
  return all;
}

}  // namespace loom::core::test
