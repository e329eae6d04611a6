// Builds a Graph node by node, for code with a fixed structure: blocks.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/core/graph.hpp"

namespace loom::core {

// The extents or axes of a field, as a literal.
using Extents = std::initializer_list<int64_t>;

// A field as a literal. It owns nothing, so tables of fields cost no code. Its lists and texts must
// live until the call that takes it returns.
struct Arg {
  std::string_view name;
  FieldType type;
  double number = 0;
  std::string_view text = {};
  std::span<const int64_t> list = {};

  constexpr Arg(std::string_view n, int64_t v)
      : name(n), type(FieldType::integer), number(static_cast<double>(v)) {}
  constexpr Arg(std::string_view n, int v) : Arg(n, int64_t{v}) {}
  constexpr Arg(std::string_view n, double v) : name(n), type(FieldType::real), number(v) {}
  constexpr Arg(std::string_view n, bool v)
      : name(n), type(FieldType::boolean), number(v ? 1 : 0) {}
  constexpr Arg(std::string_view n, const char* v) : Arg(n, std::string_view(v)) {}
  constexpr Arg(std::string_view n, std::string_view v) : name(n), type(FieldType::text), text(v) {}
  constexpr Arg(std::string_view n, Extents v)
      : name(n), type(FieldType::list), list(v.begin(), v.size()) {}
  Arg(std::string_view n, const std::vector<int64_t>& v)
      : name(n), type(FieldType::list), list(v) {}
};
using Args = std::initializer_list<Arg>;

// The layer of a kind with these fields. Errors: those of make_layer().
Result<LayerConfig> layer_with(LayerKind kind, Args args);
// A Sequential of two.
Result<LayerConfig> both_of(Result<LayerConfig> first, Result<LayerConfig> second);

class GraphMaker {
 public:
  explicit GraphMaker(std::vector<std::string> inputs = {"input"});

  static GraphValue input(int64_t i = 0) { return {kGraphInput, i}; }

  // Adds a node and returns its first output. finish() reports an Error, so chains read as one.
  GraphValue add(std::string_view name, LayerKind kind, Args args,
                 std::initializer_list<GraphValue> reads);
  GraphValue add(std::string_view name, Result<LayerConfig> layer,
                 std::span<const GraphValue> reads);

  Result<LayerConfig> finish(const GraphValue& output);
  Result<LayerConfig> finish(std::span<const GraphValue> outputs);

 private:
  GraphWiring wiring_;
  std::vector<LayerConfig> nodes_;
  std::vector<std::string> names_;
  Status failed_;
};

}  // namespace loom::core
