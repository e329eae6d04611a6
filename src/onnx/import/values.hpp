// Values of an ONNX graph during the import. A value is a constant or a stream. A stream is the
// output of a layer (an Item) through a view, with a function of its elements not yet applied.
// Views
// make reshapes and transpositions free: a layer asks whether what it sees is the memory it needs.
// Functions are compared by what they compute, on probes: see recognize(). Room-private.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "onnx/file/model.hpp"
#include "ops/activation.hpp"

namespace loom::core {

constexpr int64_t kMaxFolded = int64_t{1} << 22;  // values of a constant that folding makes

// Numbers known while reading. One value stands for all where dims say more (uniform).
struct Constant {
  std::vector<int64_t> dims;
  OnnxType type = OnnxType::f32;
  std::vector<double> values;  // integers beyond 2^53 are clamped to it
  // Its form for a batch of kOtherBatch samples. May be null if that is the same.
  std::shared_ptr<const Constant> other = nullptr;

  int64_t count() const;
  double at(int64_t i) const { return values[values.size() == 1 ? 0 : static_cast<size_t>(i)]; }
  // As integers; those beyond 2^53 are cut to it.
  std::vector<int64_t> integers() const;
  std::vector<float> floats() const;  // all of them, row-major
};
using ConstantRef = std::shared_ptr<const Constant>;

// An integer of a node; `otherwise` if it has none of that name.
int64_t attribute(const OnnxNode& node, std::string_view name, int64_t otherwise);

Result<Constant> constant_of(const OnnxTensor& tensor);
// The same as a tensor that owns its values. Errors: integers beyond 2^53, whose exact values a
// Constant lacks.
Result<OnnxTensor> tensor_of(const Constant& constant);
// The numbers of a Constant that are attributes; null for a tensor, strings or sparse values.
ConstantRef numbers_of(const OnnxNode& node);
// The result of a Shape of a value of these extents.
Constant shape_of(const OnnxNode& node, const std::vector<int64_t>& dims);
// A CastLike as the Cast that it is, to the type of its second input.
OnnxNode cast_of(const OnnxNode& node, OnnxType type);
// Constants from constants, by the rows of the operators (onnx/operators): shape arithmetic and
// masks, which importers fold wherever they meet them. fold() only where folds() says so.
bool folds(const OnnxNode& node);
Result<Constant> fold(const OnnxNode& node, int64_t opset, const std::vector<ConstantRef>& inputs);
// The extents of what a node gives of a first input of `first`, by the shape rule of its row.
// `inputs`: the constants among its inputs, of which the first is not read.
Result<std::vector<int64_t>> shape_by_row(const OnnxNode& node, int64_t opset,
                                          const std::vector<int64_t>& first,
                                          const std::vector<ConstantRef>& inputs);
// Constants from tensors, for any operator of onnx/operators. Their integers are exact in all 64
// bits. Call fold_tensors() only if folds_tensors() is true.
bool folds_tensors(const OnnxNode& node);
Result<std::vector<OnnxTensor>> fold_tensors(const OnnxNode& node, int64_t opset,
                                             std::span<const OnnxTensor* const> inputs);

// Axes of memory, row-major, and which of them make up each axis that the graph sees. Extents of 1
// are in no list. Repeated axes (of Expand) have no memory.
struct OnnxView {
  struct Axis {
    int64_t extent = 1;
    bool repeated = false;
  };
  std::vector<Axis> base;
  std::vector<std::vector<int>> axes;

  static OnnxView of(const std::vector<int64_t>& dims);
  std::vector<int64_t> dims() const;
  // Whether the graph sees the memory in its order.
  bool plain() const;
  OnnxView permuted(const std::vector<int64_t>& order) const;
  // False when the memory would have to move.
  bool reshape(const std::vector<int64_t>& dims);
  bool expand(const std::vector<int64_t>& dims);
  // Without repeated axes, and how often the axis `axis` was repeated inside.
  OnnxView once(int axis, int64_t& repeats) const;
  bool operator==(const OnnxView& other) const;
};

// A function of a row of values: elementwise but for `mean`, which is that of the row.
struct Expr;
using ExprRef = std::shared_ptr<const Expr>;
struct Expr {
  std::string op;  // "x", "number", or an operator of ONNX; "mean"
  double number = 0;
  std::vector<ExprRef> args;
  int size = 1;
  bool rows = false;  // contains a mean
};
constexpr int kMaxExpr = 96;
ExprRef expr_x();
ExprRef expr_number(double value);
// Null if it is too long.
ExprRef expr_of(std::string op, std::vector<ExprRef> args, double number = 0);
// Whether evaluate() knows the operator.
bool expr_knows(const std::string& op, size_t args);

// The meaning of a function that layers compute.
struct Recognized {
  enum class Kind { none, activation, affine, rms, layer } kind = Kind::none;
  Activation activation = Activation::linear;
  double scale = 1, shift = 0;  // affine
  double eps = 0;               // norms
};
// `inner` (may be null): a part of `f` that is taken for x; then x must not occur outside of it.
Recognized recognize(const Expr& f, const Expr* inner = nullptr);
// Every part of `f`, itself last.
std::vector<ExprRef> expr_parts(const ExprRef& f);

}  // namespace loom::core
