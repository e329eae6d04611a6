// The adapters of a cell: which weights have one, their parameters, and the commands of a product.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/pattern.hpp"
#include "base/text.hpp"
#include "grid/pass.hpp"
#include "layers/core/forward_call.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxRank = 65536;

// A weight of a product below a cell.
struct Weight {
  Node* node = nullptr;
  size_t index = 0;   // into Node::params
  std::string owner;  // path of the node
  std::string below;  // the name that patterns select: "0/q"
};

void find_weights(Node& node, const std::string& path, size_t prefix, std::vector<Weight>& out) {
  std::vector<ParamSpec> specs;
  if (node.config.def->params != nullptr && !node.disabled())
    node.config.def->params(node.config, specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].product) continue;
    out.push_back({&node, i, path, cat(path, "/", specs[i].name).substr(prefix)});
  }
  for (size_t i = 0; i < node.children.size(); ++i)
    find_weights(node.children[i], cat(path, "/", i), prefix, out);
}

bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

Status check_spec(const AdapterSpec& spec) {
  if (!is_name(spec.name)) {
    return invalid(cat("an adapter has the name '", printable(spec.name),
                       "'; names have letters, digits, - and _"));
  }
  const std::string who = cat("the adapter '", spec.name, "'");
  if (spec.weights.empty()) return invalid(cat(who, " selects no weights"));
  if (spec.rank < 1 || spec.rank > kMaxRank) {
    return invalid(cat(who, ": rank is ", spec.rank, ", must be from 1 to ", kMaxRank));
  }
  if (!std::isfinite(spec.scale)) return invalid(cat(who, ": scale must be a finite number"));
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    return invalid(cat(who, ": dropout is ", spec.dropout, ", must be from 0 to below 1"));
  }
  return {};
}

std::string names_of(const std::vector<Weight>& weights) {
  if (weights.empty()) return "none of its weights can have one";
  std::vector<std::string> names;
  for (const Weight& weight : weights) names.push_back(weight.below);
  return cat("it has ", join(names, ", "));
}

}  // namespace

bool Network::has_adapters() const {
  return std::ranges::any_of(params_, [](const Param& p) { return p.adapter; });
}

Status Network::add_adapters(const Cell& cell, const Coord& at, Node& node) {
  if (cell.adapters.empty()) return {};
  std::vector<Weight> weights;
  find_weights(node, at.str(), at.str().size() + 1, weights);
  for (const AdapterSpec& spec : cell.adapters) {
    if (Status checked = check_spec(spec); !checked.ok()) {
      return invalid(cat("cell ", at.str(), ": ", checked.error().message));
    }
    for (const std::string& pattern : spec.weights) {
      bool found = false;
      for (const Weight& weight : weights) {
        if (!matches_pattern(pattern, weight.below)) continue;
        LOOM_TRY(add_adapter(spec, weight.owner, weight.index, *weight.node));
        found = true;
      }
      if (found) continue;
      return invalid(cat("cell ", at.str(), ": the adapter '", spec.name, "' selects '",
                         printable(pattern), "'; ", names_of(weights)));
    }
  }
  return {};
}

Status Network::add_adapter(const AdapterSpec& spec, const std::string& path, size_t weight,
                            Node& node) {
  Param& base = params_[static_cast<size_t>(node.params[weight])];
  for (const NodeAdapter& other : node.adapters) {
    if (other.weight != weight || other.spec->name != spec.name) continue;
    if (other.spec == &spec) return {};  // two patterns select it
    return invalid(cat(path, "/", base.spec.name, " has two adapters '", spec.name, "'"));
  }
  base.frozen = true;
  const int64_t out = base.spec.shape[0], in = base.spec.shape[1];
  const std::string start = cat(base.spec.name, ".", spec.name);
  const auto add = [&](std::string_view part, const Shape& shape, Init init) {
    const std::string& name = *names_.insert(cat(start, ".", part)).first;
    return param_for({name, shape, init}, path, nullptr);
  };
  NodeAdapter made{weight, 0, 0, &spec};
  LOOM_ASSIGN(made.a, add("a", Shape{spec.rank, in}, Init::fan_in));
  LOOM_ASSIGN(made.b, add("b", Shape{out, spec.rank}, Init::zeros));
  node.params.push_back(made.a);
  node.params.push_back(made.b);
  node.adapters.push_back(made);
  return {};
}

namespace {

// x m / (1 - rate), where m is 1 with probability 1 - rate, else 0.
Result<Tensor> dropped(ForwardCall& call, const Tensor& x, float rate, const Noise& source) {
  LOOM_ASSIGN(const Tensor noise, call.tensor(x.shape));
  LOOM_ASSIGN(const Tensor above, call.like(noise));
  LOOM_ASSIGN(const Tensor kept, call.like(noise));
  LOOM_ASSIGN(const Tensor factor, call.like(noise));
  LOOM_ASSIGN(const Tensor y, call.like(noise));
  LOOM_ASSIGN(const Tensor limit, call.constant(rate));
  LOOM_ASSIGN(const Tensor by, call.constant(1.0f / (1.0f - rate)));
  LOOM_TRY(call.ops().random({noise, source.step, source.seed, source.stream}));
  LOOM_TRY(call.ops().binary({noise, limit, above, BinaryKind::sub}));
  LOOM_TRY(call.ops().unary({above, kept, UnaryKind::step}));
  LOOM_TRY(call.ops().binary({kept, by, factor, BinaryKind::mul}));
  LOOM_TRY(call.ops().binary({x, factor, y, BinaryKind::mul}));
  return y;
}

// The noise of adapter `i` of a node: a stream beside that of its layer.
Result<Tensor> adapter_input(ForwardCall& call, const NodeAdapter& adapter, size_t i,
                             const Tensor& x) {
  if (!call.training() || adapter.spec->dropout == 0) return x;
  Noise source = call.noise();
  source.stream |= static_cast<uint64_t>(i + 1) << 40;
  return dropped(call, x, static_cast<float>(adapter.spec->dropout), source);
}

}  // namespace

Status adapted_product(ForwardCall& call, const Network& network, const Node& node, size_t weight,
                       MatmulArgs m) {
  const Tensor y = m.y;
  const Activation activation = std::exchange(m.activation, Activation::linear);
  LOOM_ASSIGN(m.y, call.tensor(Shape{y.rows(), y.cols()}));
  LOOM_TRY(call.ops().matmul(m));
  Tensor sum = m.y;
  const auto tensor = [&](int param) {
    return network.params()[static_cast<size_t>(param)].tensor;
  };
  for (size_t i = 0; i < node.adapters.size(); ++i) {
    const NodeAdapter& adapter = node.adapters[i];
    if (adapter.weight != weight) continue;
    LOOM_ASSIGN(const Tensor x, adapter_input(call, adapter, i, m.x));
    LOOM_ASSIGN(const Tensor low, call.tensor(Shape{y.rows(), adapter.spec->rank}));
    LOOM_ASSIGN(const Tensor high, call.like(sum));
    LOOM_ASSIGN(const Tensor next, call.like(sum));
    LOOM_TRY(call.ops().matmul({x, tensor(adapter.a), {}, low}));
    LOOM_ASSIGN(const Tensor scaled, call.scaled(low, static_cast<float>(adapter.spec->scale)));
    LOOM_TRY(call.ops().matmul({scaled, tensor(adapter.b), {}, high}));
    LOOM_TRY(call.ops().binary({sum, high, next, BinaryKind::add}));
    sum = next;
  }
  return call.ops().unary({sum, y, static_cast<UnaryKind>(activation)});
}

}  // namespace loom::core
