// The table of operators that both importers have, inputs of nodes, and folding. See importer.hpp.
#include "onnx/import/reader/importer.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace loom::core {

// Shapes name an open batch as the reader knows it, not by the number that stands for it here:
// [7919, 4] is [batch, 4], and four samples laid side by side are 4 x batch.
std::string with_open_batch(std::string_view reason, int64_t batch) {
  std::string text;
  for (size_t at = 0; at < reason.size();) {
    const size_t end = std::min(reason.find_first_not_of("0123456789", at), reason.size());
    const std::string_view digits = reason.substr(at, end - at);
    int64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const int64_t times = number % batch == 0 ? number / batch : 0;
    if (times == 0) {
      text += digits.empty() ? reason.substr(at, 1) : digits;
    } else {
      text += times == 1 ? "batch" : cat(times, " x batch");
    }
    at = std::max(end, at + 1);
  }
  return text;
}

std::span<const Importer::ReaderRow> Importer::readers() {
  using I = Importer;
  static constexpr ReaderRow kRows[] = {
      {"constant", &I::read_constant},
      {"shape", &I::read_shape},
      {"same", &I::read_same},
      {"cast", &I::read_cast},
      {"view", &I::read_view},
      {"transpose", &I::read_transpose},
      {"expand", &I::read_expand},
      {"slice", &I::read_slice},
      {"concat", &I::read_concat},
      {"gather", &I::read_gather},
      {"gelu", &I::read_gelu},
      {"where", &I::where},
      {"softmax", &I::read_softmax},
      {"matmul", &I::matmul},
      {"dense", &I::read_gemm},
      {"conv", &I::read_conv},
      {"norm batch", &I::read_batch_norm},
      {"recurrent", &I::read_recurrent},
  };
  return kRows;
}

Error Importer::refuse(const OnnxNode& n, std::string_view reason) const {
  return refused(cat("node '", printable(n.name), "' (", printable(n.op), "): ", reason));
}

Error Importer::refused(std::string_view message) const {
  return unsupported(
      batch_ == open_batch_ ? with_open_batch(message, batch_) : std::string(message), where_);
}

Status Importer::spend(const OnnxNode& n, int64_t values) {
  if (values > left_)
    return refuse(
        n, "the model computes far more values than it has; Loom does not import such a model");
  left_ -= values;
  return {};
}

Result<const ImportValue*> Importer::input(const OnnxNode& n, size_t i) const {
  if (!has_input(n, i)) return refuse(n, cat("input ", i, " is absent"));
  if (const ImportValue* value = find(n.inputs[i])) return value;
  return refuse(n, cat("its input '", printable(n.inputs[i]),
                       "' is made by no node before it, or is an output Loom does not compute"));
}

Result<bool> Importer::all_known(const OnnxNode& n) const {
  bool known = !n.inputs.empty();
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const ImportValue* value, input(n, i));
    known = known && value->is_constant();
  }
  return known;
}

bool Importer::learns(const OnnxNode& n, size_t i) const {
  if (!has_input(n, i)) return false;
  const Origin from = origins_.of(n.inputs[i]);
  return from == Origin::weight || (from == Origin::derived && !options_.for_training);
}

Result<ConstantRef> Importer::constant(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(ConstantRef c, constant_of_both(n, i));
  depends_on_batch_ |= c->other != nullptr;
  return c;
}

Result<ConstantRef> Importer::constant_of_both(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(const ImportValue* value, input(n, i));
  if (value->constant != nullptr) return value->constant;
  if (value->tensor == nullptr)
    return refuse(n, cat("its input '", printable(n.inputs[i]), "' must be a constant"));
  left_ -= value->tensor->count();
  if (left_ < 0) return refuse(n, "the model copies its values too often");
  LOOM_ASSIGN(Constant made, constant_of(*value->tensor));
  return std::make_shared<const Constant>(std::move(made));
}

Result<std::vector<int64_t>> Importer::list(const OnnxNode& n, size_t i, std::string_view attribute,
                                            std::vector<int64_t> otherwise) {
  if (!has_input(n, i)) return attribute_list(n, attribute, std::move(otherwise));
  LOOM_ASSIGN(const ConstantRef c, constant(n, i));
  if (c->dims.size() != 1 || c->count() > 64) return refuse(n, cat("input ", i, " must be a list"));
  return c->integers();
}

Result<std::vector<int64_t>> Importer::extents_of(const OnnxNode& n, size_t i) const {
  LOOM_ASSIGN(const ImportValue* x, input(n, i));
  if (x->constant != nullptr) return x->constant->dims;
  if (x->tensor != nullptr) return x->tensor->shape;
  return extents(*x);
}

Result<int64_t> Importer::axis_of(const OnnxNode& n, int64_t otherwise, size_t rank) const {
  int64_t axis = attribute(n, "axis", otherwise);
  if (axis < 0) axis += static_cast<int64_t>(rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    return refuse(n, "an axis that does not exist");
  return axis;
}

Result<OnnxType> Importer::checked(const OnnxNode& n) const {
  if (!knows_operator(n.op)) {
    std::vector<std::string> names;
    add_own_operators(names);
    for (const ReaderRow& row : readers()) add_names(row.op, names);
    return refuse(n, cat("no layer computes this operator; read are elementwise functions, ",
                         join(names, ", ")));
  }
  std::vector<OnnxType> types;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    types.push_back(OnnxType::undefined);
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const ImportValue* value, input(n, i));
    types.back() = value->type;
  }
  const Result<OnnxType> type = check_node(n, opset_, types);
  if (!type.ok()) return refuse(n, type.error().message);
  return *type;
}

Status Importer::fold_node(const OnnxNode& n) {
  std::vector<ConstantRef> inputs, others;
  bool differs = false;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    inputs.push_back(nullptr);
    others.push_back(nullptr);
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(inputs.back(), constant_of_both(n, i));
    const ConstantRef& other = inputs.back()->other;
    differs |= other != nullptr;
    others.back() = other != nullptr ? other : inputs.back();
  }
  Result<Constant> made = fold(n, opset_, inputs);
  if (!made.ok()) return refused(made.error().message);
  if (differs) note_other(*made, fold(n, opset_, others));
  LOOM_TRY(spend(n, static_cast<int64_t>(made->values.size())));
  ImportValue out;
  out.constant = std::make_shared<const Constant>(std::move(*made));
  out.source = folded_source(n);
  return define_constant(n, std::move(out));
}

Result<std::vector<int64_t>> Importer::reshaped(const OnnxNode& n,
                                                const std::vector<int64_t>& have) {
  std::vector<ConstantRef> inputs(n.inputs.size());
  if (has_input(n, 1)) {
    LOOM_ASSIGN(inputs[1], constant_of_both(n, 1));
  }
  Result<std::vector<int64_t>> dims = shape_by_row(n, opset_, have, inputs);
  if (!dims.ok()) return refused(dims.error().message);
  if (!has_two_batches()) return dims;
  if (inputs.size() > 1 && inputs[1] != nullptr && inputs[1]->other != nullptr)
    inputs[1] = inputs[1]->other;
  const Result<std::vector<int64_t>> again = shape_by_row(n, opset_, other_extents(have), inputs);
  depends_on_batch_ |= !again.ok() || *again != other_extents(*dims);
  return dims;
}

}  // namespace loom::core
