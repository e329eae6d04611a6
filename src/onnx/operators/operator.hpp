// The row of an operator: its name, its signature and the function that computes it.
// The families here are in every build that reads ONNX: constants of imported networks are folded
// by them, and graphs that run as they are use them too. Families that only the interpreter needs
// are in src/onnx/interpreter; those of them that importers read are declared here.
#pragma once

#include "onnx/operators/call.hpp"
#include "onnx/operators/signature.hpp"

namespace loom::core::evaluate {

// A row of the table of operators.
struct Operator {
  std::string_view domain;  // "" for that of ONNX
  std::string_view name;
  Status (*run)(const Call&);  // may be null in declared.cpp alone
  // See signature.hpp. The rows of the interpreter that are declared have none of their own.
  std::string_view signature;
  // The layer that computes it, and which of its functions: "reduce log_sum". Importers choose a
  // handler by this or by the name.
  std::string_view layer;
  // lists: inputs may be sequences or absent. random: its result is never a constant. graphs: its
  // attributes hold graphs. folds: importers compute it wherever its inputs are known.
  // pointwise: each element of the result follows from one element of each input. function: graphs
  // spell activations and norms out with it.
  // moves: its numbers are those of its inputs. picks: of the first input alone. fills: one number
  // throughout.
  enum : uint16_t {
    none = 0,
    lists = 1,
    random = 2,
    graphs = 4,
    folds = 8,
    pointwise = 16,
    moves = 32,
    picks = 64,
    fills = 128,
    function = 256
  };
  uint16_t flags = none;
  // Prepares constant inputs when the graph is opened; null if there is nothing to prepare.
  Result<std::shared_ptr<const Prepared>> (*prepare)(const Call&) = nullptr;
  // The extents of its output. A row that picks reads no values of its first input here. Null if
  // only a run shows them.
  Result<Dims> (*shape)(const Call&) = nullptr;

  // An Error for cases that the standard leaves undefined: importers refuse them, and the
  // interpreter computes a value. Null if all cases are defined.
  Status (*defined)(const Call&) = nullptr;

  InputCount inputs() const;
  // Whether a version of it has the attribute.
  bool knows_attribute(std::string_view attribute) const;
};

std::span<const Operator> unary_operators();
std::span<const Operator> pair_operators();
std::span<const Operator> cast_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> layout_operators();
std::span<const Operator> gather_operators();
std::span<const Operator> reduce_operators();

// The families above.
std::span<const std::span<const Operator>> common_families();
// A row of one of them; null if none has the operator.
const Operator* find_common_operator(std::string_view domain, std::string_view name);
// Rows without a function.
std::span<const Operator> declared_operators();
// A row of ONNX itself, with a function or without; null if no build has it.
const Operator* find_described(std::string_view name);

// Operator::layer, apart.
struct LayerName {
  std::string_view kind, function;
};
// The layer of an operator of ONNX itself; both are empty if its row names none.
LayerName layer_of(std::string_view name);

}  // namespace loom::core::evaluate
