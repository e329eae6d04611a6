// Operators that only move or copy values, and products: their arguments, read once for both
// importers. See importer.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "onnx/import/reader/importer.hpp"

namespace loom::core {
namespace {

constexpr int64_t kToEnd = int64_t{1} << 52;

// Whether a cast leaves computed values as they are: Loom computes with f32 for every float type,
// and an f32 holds the integers that a network computes.
bool keeps_values(OnnxType from, OnnxType to) {
  if (to == from) return true;
  if (is_integer(from)) return to == OnnxType::i64 || to == OnnxType::i32;
  return is_float(from) && (to == OnnxType::f32 || to == OnnxType::f64);
}

}  // namespace

Status Importer::read_constant(const OnnxNode& n) {
  const OnnxAttribute* a = n.attributes.size() == 1 ? &n.attributes[0] : nullptr;
  ImportValue v;
  if (a != nullptr && a->name == "value" && a->tensors.size() == 1) {
    v.tensor = &a->tensors[0];
    v.source = ++sources_;
  } else if (a != nullptr) {
    v.constant = numbers_of(n);
  }
  if (!v.is_constant()) return refuse(n, "a constant of strings or sparse values");
  return define_constant(n, std::move(v));
}

Status Importer::read_shape(const OnnxNode& n) {
  LOOM_ASSIGN(const std::vector<int64_t> dims, extents_of(n, 0));
  Constant made = shape_of(n, dims);
  LOOM_ASSIGN(const ImportValue* x, input(n, 0));
  if (has_two_batches()) {
    const bool two = x->constant != nullptr && x->constant->other != nullptr;
    note_other(made, shape_of(n, two ? x->constant->other->dims : other_extents(dims)));
  }
  ImportValue v;
  v.constant = std::make_shared<const Constant>(std::move(made));
  return define_constant(n, std::move(v));
}

// Identity and Dropout: the value itself.
Status Importer::read_same(const OnnxNode& n) {
  if (layer_of(n.op).function != "dropout") return define_same(n);
  if (has_input(n, 1)) {
    LOOM_ASSIGN(const ConstantRef ratio, constant(n, 1));
    if (!ratio->dims.empty() || !(ratio->at(0) >= 0 && ratio->at(0) < 1))
      return refuse(n, "a ratio that is not one number from 0 to 1");
  }
  if (has_input(n, 2)) {
    LOOM_ASSIGN(const ConstantRef training, constant(n, 2));
    if (training->count() != 1 || training->at(0) != 0)
      return refuse(n, "training_mode drops values at random; export for inference");
  }
  return define_same(n);
}

Status Importer::read_cast(const OnnxNode& n) {
  LOOM_ASSIGN(const ImportValue* x, input(n, 0));
  if (attribute(n, "saturate", 1) != 1)
    return refuse(n, "saturate is of types of 8 bits, none of which is read");
  const OnnxType from = x->type, to = static_cast<OnnxType>(attribute(n, "to", 0));
  return keeps_values(from, to) ? define_same(n) : cast(n, from, to);
}

// Reshape, Flatten, Squeeze, Unsqueeze, of constants too.
Status Importer::read_view(const OnnxNode& n) {
  LOOM_ASSIGN(const ImportValue* x, input(n, 0));
  if (!x->is_constant()) return reshape(n);
  LOOM_ASSIGN(const ConstantRef from, constant(n, 0));
  LOOM_ASSIGN(std::vector<int64_t> dims, reshaped(n, from->dims));
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return refuse(n, cat("a shape of ", dims.size(), " axes; ", Shape::kMaxRank, " are read"));
  ImportValue v;
  v.constant =
      std::make_shared<const Constant>(Constant{std::move(dims), from->type, from->values});
  return define_constant(n, std::move(v));
}

Status Importer::read_transpose(const OnnxNode& n) {
  LOOM_ASSIGN(const std::vector<int64_t> dims, extents_of(n, 0));
  std::vector<int64_t> order;
  for (size_t i = dims.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  return transpose(n, attribute_list(n, "perm", std::move(order)));
}

Status Importer::read_expand(const OnnxNode& n) {
  LOOM_ASSIGN(const ConstantRef to, constant_of_both(n, 1));
  if (to->dims.size() != 1 || to->count() > 64) return refuse(n, "input 1 must be a list");
  depends_on_batch_ |= !follows_batch(*to);
  return expand(n, to->integers());
}

Status Importer::read_slice(const OnnxNode& n) {
  OnnxSlice args;
  LOOM_ASSIGN(args.starts, list(n, 1, "starts", {}));
  LOOM_ASSIGN(args.ends, list(n, 2, "ends", {}));
  std::vector<int64_t> all;
  for (size_t i = 0; i < args.starts.size(); ++i) all.push_back(static_cast<int64_t>(i));
  LOOM_ASSIGN(args.axes, list(n, 3, "axes", all));
  LOOM_ASSIGN(args.steps, list(n, 4, "steps", std::vector<int64_t>(args.starts.size(), 1)));
  for (std::vector<int64_t>* side : {&args.starts, &args.ends}) {
    for (int64_t& p : *side) p = std::clamp(p, -kToEnd, kToEnd);
  }
  return slice(n, std::move(args));
}

Status Importer::read_concat(const OnnxNode& n) {
  return concat(n, attribute(n, "axis", 0));
}

// Rows of a table that indices name, or one place, or some places, of an axis.
Status Importer::read_gather(const OnnxNode& n) {
  LOOM_ASSIGN(const ImportValue* table, input(n, 0));
  LOOM_ASSIGN(const ImportValue* indices, input(n, 1));
  if (table->is_constant() && !indices->is_constant()) return look_up(n, attribute(n, "axis", 0));
  if (!indices->is_constant()) return refuse(n, "looks up computed values by computed places");
  LOOM_ASSIGN(const ConstantRef at, constant(n, 1));
  LOOM_ASSIGN(const std::vector<int64_t> dims, extents_of(n, 0));
  int64_t axis = attribute(n, "axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  if (axis < 0 || axis >= static_cast<int64_t>(dims.size()) || at->count() < 1 ||
      at->count() > kMaxFolded)
    return refuse(n, "its indices are not a list for an existing axis");
  return pick(n, axis, *at);
}

Status Importer::read_gelu(const OnnxNode& n) {
  const std::string form = attribute_text(n, "approximate", "none");
  if (form != "none" && form != "tanh")
    return refuse(n, cat("approximate '", printable(form), "'; none and tanh are read"));
  return gelu(n, form == "tanh");
}

// Over one axis; below opset 13 over all from `axis` on.
Status Importer::read_softmax(const OnnxNode& n) {
  LOOM_ASSIGN(const std::vector<int64_t> dims, extents_of(n, 0));
  LOOM_ASSIGN(const int64_t axis, axis_of(n, opset_ < 13 ? 1 : -1, dims.size()));
  return softmax(n, axis, layer_of(n.op).function == "log");
}

Status Importer::read_gemm(const OnnxNode& n) {
  return gemm(n, {attribute_real(n, "alpha", 1), attribute_real(n, "beta", 1),
                  attribute(n, "transA", 0) != 0, attribute(n, "transB", 0) != 0});
}

}  // namespace loom::core
