#include "loom/templates.hpp"

#include "bridge/network_json.hpp"
#include "grid/builders.hpp"

namespace loom {
namespace {

Result<std::string> text_of(const Result<core::NetworkSpec>& network) {
  if (!network.ok()) return network.error();
  return core::write_network(*network);
}

core::Shape shape_of(const std::vector<int64_t>& extents) {
  core::Shape shape;
  for (size_t i = extents.size(); i-- > 0 && extents.size() <= core::Shape::kMaxRank;)
    shape = shape.after(extents[i]);
  return shape;
}

}  // namespace

Result<std::string> describe(const Mlp& network) {
  return text_of(core::build_mlp(
      {network.in, network.out, network.hidden, std::string(activation_name(network.activation))}));
}

Result<std::string> describe(const Cnn& network) {
  return text_of(core::build_cnn({shape_of(network.picture), network.filters, network.kernels,
                                  network.stride, network.hidden, network.out,
                                  std::string(activation_name(network.activation))}));
}

Result<std::string> describe(const Transformer& n) {
  return text_of(core::build_transformer(
      {n.vocab, n.width, n.layers, n.heads, n.kv_heads, n.inner, n.time, n.out, n.causal}));
}

Result<std::string> describe(const Recurrent& n) {
  return text_of(core::build_recurrent({std::string(recurrent_cell_name(n.cell)), n.in, n.out,
                                        n.time, n.hidden, n.vocab, n.sequence}));
}

Result<std::string> describe(const RandomGrid& n) {
  return text_of(
      core::build_random({n.in, n.out, n.width, n.depth, n.rows, n.cols, n.layers, n.seed}));
}

}  // namespace loom
