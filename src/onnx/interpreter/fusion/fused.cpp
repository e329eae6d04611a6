// Activations, normalizations and embeddings as the optimizer of ONNX Runtime fuses them (domain
// com.microsoft). Operators of that domain that the standard has under another name are here too.
// Each is a chain of operators of the standard. Formulas: ContribOperators.md of ONNX Runtime.
#include <algorithm>
#include <cmath>

#include "onnx/interpreter/families.hpp"
#include "onnx/interpreter/parts.hpp"

namespace loom::core::evaluate {
namespace {

constexpr std::string_view kMs = "com.microsoft";

Status only_real(const Call& c) {
  return is_real(c.value(0).type) ? Status{} : c.bad("takes floats");
}

// Input 0 plus input 1, where it is given, in the type to compute in.
Result<Value> biased(const Call& c) {
  LOOM_TRY(only_real(c));
  LOOM_ASSIGN(const Value x, c.widened(0));
  if (!c.has(1)) return x;
  LOOM_ASSIGN(const Value bias, c.as(1, x.type));
  return combine(c, Pair::add, x, bias);
}

Status bias_gelu(const Call& c) {
  LOOM_ASSIGN(const Value x, biased(c));
  LOOM_ASSIGN(const Value y, Part(c, "Gelu").value({&x}));
  return c.give_as(y, c.value(0).type);
}

Status fast_gelu(const Call& c) {
  LOOM_ASSIGN(const Value x, biased(c));
  LOOM_ASSIGN(const Value y, Part(c, "Gelu").set("approximate", std::string("tanh")).value({&x}));
  return c.give_as(y, c.value(0).type);
}

Status quick_gelu(const Call& c) {
  LOOM_TRY(only_real(c));
  LOOM_ASSIGN(const Value x, c.widened(0));
  const auto alpha = static_cast<float>(c.real("alpha", 1.702F));
  LOOM_ASSIGN(const Value y, Part(c, "Swish").set("alpha", alpha).value({&x}));
  return c.give_as(y, c.value(0).type);
}

// A row of the table that is one of the standard, with the same inputs and attributes.
Status same_as(const Call& c, std::string_view op) {
  Part part(c, op);
  for (const OnnxAttribute& a : c.node.attributes) part.keep(a.name);
  LOOM_ASSIGN(Value y, part.value({optional(c, 0), optional(c, 1), optional(c, 2)}));
  return c.give(std::move(y));
}

// input + skip (+ bias) in the type to compute in.
Result<Value> skipped(const Call& c, size_t bias) {
  LOOM_TRY(only_real(c));
  LOOM_ASSIGN(Value sum, c.widened(0));
  for (const size_t i : {size_t{1}, bias}) {
    if (!c.has(i)) continue;
    LOOM_ASSIGN(const Value v, c.as(i, sum.type));
    LOOM_ASSIGN(sum, combine(c, Pair::add, sum, v));
  }
  return sum;
}

constexpr float kSkipEpsilon = 1e-12F;

Part norm(const Call& c, std::string_view op) {
  Part part(c, op);
  part.set("epsilon", static_cast<float>(c.real("epsilon", static_cast<double>(kSkipEpsilon))));
  return part;
}

// The statistics are there for training, and no kernel of ONNX Runtime for CPUs writes them.
Status no_statistics(const Call& c) {
  return c.wants(1) || c.wants(2) ? c.not_done("saved means and variances") : Status{};
}

Status skip_layer_norm(const Call& c) {
  LOOM_TRY(no_statistics(c));
  LOOM_ASSIGN(const Value sum, skipped(c, 4));
  LOOM_ASSIGN(const Value y,
              norm(c, "LayerNormalization").value({&sum, optional(c, 2), optional(c, 3)}));
  LOOM_TRY(c.give_as(y, c.value(0).type));
  return c.wants(3) ? c.give_as(sum, c.value(0).type, 3) : Status{};
}

Status skip_rms_norm(const Call& c) {
  LOOM_TRY(no_statistics(c));
  LOOM_ASSIGN(const Value sum, skipped(c, 3));
  LOOM_ASSIGN(const Value y, norm(c, "RMSNormalization").value({&sum, optional(c, 2)}));
  LOOM_TRY(c.give_as(y, c.value(0).type));
  return c.wants(3) ? c.give_as(sum, c.value(0).type, 3) : Status{};
}

// RMSNormalization of the standard's domain, with 1 / sqrt(mean of squares + epsilon) as a second
// output.
Status simplified_norm(const Call& c) {
  LOOM_TRY(only_real(c));
  LOOM_ASSIGN(Value y, Part(c, "RMSNormalization")
                           .keep("axis")
                           .keep("epsilon")
                           .value({optional(c, 0), optional(c, 1)}));
  if (!c.wants(1)) return c.give(std::move(y));
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", -1), x.rank()));
  LOOM_ASSIGN(const Value epsilon, real_row(c, {c.real("epsilon", 1e-5F)}));
  const Value rows = x.view_as({product(x.dims, 0, axis), product(x.dims, axis, x.rank())});
  LOOM_ASSIGN(const Value squares, combine(c, Pair::mul, rows, rows));
  LOOM_ASSIGN(Value axes, c.make(OnnxType::i64, {1}));
  *axes.data<int64_t>() = 1;
  LOOM_ASSIGN(const Value mean, Part(c, "ReduceMean").value({&squares, &axes}));
  LOOM_ASSIGN(const Value same, cast(c.rt.memory, epsilon, x.type));
  LOOM_ASSIGN(const Value shifted, combine(c, Pair::add, mean, same));
  LOOM_ASSIGN(const Value root, Part(c, "Sqrt").value({&shifted}));
  LOOM_ASSIGN(const Value inverse, Part(c, "Reciprocal").value({&root}));
  Dims dims(x.dims.begin(), x.dims.begin() + axis);
  dims.resize(x.dims.size(), 1);
  LOOM_TRY(c.give(std::move(y)));
  return c.give(inverse.view_as(dims), 1);
}

// Rows of table `table` by the ids of input `ids`.
Result<Value> looked_up(const Call& c, const Value& table, const Value& ids) {
  if (table.rank() != 2 || ids.rank() != 2) return c.bad("takes tables and ids of two axes");
  return Part(c, "Gather").value({&table, &ids});
}

// Ids of the places 0, 1, ... of a sequence.
Result<Value> counting(const Call& c, int64_t n) {
  LOOM_ASSIGN(Value v, c.make(OnnxType::i64, {1, n}));
  for (int64_t i = 0; i < n; ++i) v.data<int64_t>()[i] = i;
  return v;
}

// How many places of each row of a mask are 1; 0 without a mask.
Status give_mask_index(const Call& c, const Value* mask) {
  const Dims& ids = c.value(0).dims;
  LOOM_ASSIGN(Value y, c.make(OnnxType::i32, {ids[0]}));
  fill_zero(y);
  if (mask != nullptr) {
    if (mask->dims != ids || mask->type != OnnxType::i32) return c.bad("a mask that does not fit");
    for (int64_t i = 0; i < mask->count(); ++i)
      y.data<int32_t>()[i / ids[1]] += mask->data<int32_t>()[i] == 1 ? 1 : 0;
  }
  return c.give(std::move(y), 1);
}

// Tables of words, places and, where there is one, kinds of sentences; ids of kinds are input 1.
struct Tables {
  const Value *words, *indices, *kinds, *gamma, *beta;
};
Status embed(const Call& c, const Tables& t, const Value* place_ids) {
  const Value& ids = c.value(0);
  if (c.has(1) != (t.kinds != nullptr)) return c.bad("segments and their table come together");
  if (t.words == nullptr || t.indices == nullptr || t.gamma == nullptr || t.beta == nullptr)
    return c.bad("takes tables of words and positions, gamma and beta");
  if (ids.rank() != 2) return c.bad("ids must be [B, S]");
  LOOM_ASSIGN(Value sum, looked_up(c, *t.words, ids));
  LOOM_ASSIGN(const Value count, counting(c, ids.dims[1]));
  LOOM_ASSIGN(const Value indices,
              looked_up(c, *t.indices, place_ids == nullptr ? count : *place_ids));
  LOOM_ASSIGN(sum, Part(c, "Add").value({&sum, &indices}));
  if (t.kinds != nullptr) {
    LOOM_ASSIGN(const Value kinds, looked_up(c, *t.kinds, c.value(1)));
    LOOM_ASSIGN(sum, Part(c, "Add").value({&sum, &kinds}));
  }
  if (sum.rank() != 3 || sum.dims[0] != ids.dims[0]) return c.bad("ids that do not fit");
  LOOM_ASSIGN(Value y, norm(c, "LayerNormalization").value({&sum, t.gamma, t.beta}));
  LOOM_TRY(c.give(std::move(y)));
  LOOM_TRY(give_mask_index(c, optional(c, 7)));
  return c.give(std::move(sum), 2);
}

Status embed_norm(const Call& c) {
  return embed(c, {optional(c, 2), optional(c, 3), optional(c, 4), optional(c, 5), optional(c, 6)},
               optional(c, 8));
}

// The same of tables in 8 bits: scales are inputs 8 to 12, zero points 13 to 17.
Status q_embed_norm(const Call& c) {
  Value made[5];
  const Value* table[5] = {};
  for (size_t i = 0; i < 5; ++i) {
    if (!c.has(i + 2)) continue;
    LOOM_ASSIGN(made[i], Part(c, "DequantizeLinear")
                             .value({optional(c, i + 2), optional(c, i + 8), optional(c, i + 13)}));
    table[i] = &made[i];
  }
  return embed(c, {table[0], table[1], table[2], table[3], table[4]}, nullptr);
}

Status expand_dims(const Call& c) {
  return same_as(c, "Unsqueeze");
}
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT(google-explicit*)
};
template <Name N>
Status renamed(const Call& c) {
  return same_as(c, N.text);
}

// Pads as one row; the fill value has one element.
Status pad(const Call& c) {
  const Value pads = c.value(1).view_as({c.value(1).count()});
  LOOM_ASSIGN(Value y, Part(c, "Pad").keep("mode").value({&c.value(0), &pads, optional(c, 2)}));
  return c.give(std::move(y));
}

Status range(const Call& c) {
  Value in[3];
  for (size_t i = 0; i < 3; ++i) {
    if (i == 2 && !c.has(2)) {
      LOOM_ASSIGN(const Value one, real_row(c, {1}));
      LOOM_ASSIGN(in[2], cast(c.rt.memory, one, in[0].type));
      continue;
    }
    if (c.value(i).count() != 1) return c.bad(cat("input ", i, " must be one number"));
    in[i] = c.value(i).view_as(Dims{});
  }
  LOOM_ASSIGN(Value y, Part(c, "Range").value({&in[0], &in[1], &in[2]}));
  return c.give(std::move(y));
}

// Values, the place of each input among them, and how often they occur, in the order of the input.
Status unique(const Call& c) {
  LOOM_ASSIGN(std::vector<Slot> made,
              Part(c, "Unique").set("sorted", int64_t{0}).values({&c.value(0)}, 4));
  LOOM_TRY(c.give(made[0].tensor, 0));
  LOOM_TRY(c.give(made[2].tensor, 1));
  return c.give(made[3].tensor, 2);
}

// Distances of every row of A to every row of B, which scikit-learn's converter writes.
Status cdist(const Call& c) {
  LOOM_TRY(only_real(c));
  LOOM_ASSIGN(const Value a, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(const Value b, c.as(1, OnnxType::f64));
  const std::string metric = c.text("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") return c.not_done(cat("metric ", metric));
  if (a.rank() != 2 || b.rank() != 2 || a.last() != b.last())
    return c.bad("takes rows of one width");
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {a.dims[0], b.dims[0]}));
  const int64_t n = a.last();
  for (int64_t i = 0; i < y.count(); ++i) {
    const double* p = a.data<double>() + i / b.dims[0] * n;
    const double* q = b.data<double>() + i % b.dims[0] * n;
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += (p[k] - q[k]) * (p[k] - q[k]);
    y.data<double>()[i] = metric == "euclidean" ? std::sqrt(sum) : sum;
  }
  return c.give_as(y, c.value(0).type);
}

constexpr Operator kFused[] = {
    {"", "SimplifiedLayerNormalization", simplified_norm, {}},
    {kMs, "BiasGelu", bias_gelu, "aa"},
    {kMs, "FastGelu", fast_gelu, "a?a"},
    {kMs, "QuickGelu", quick_gelu, "a alpha"},
    {kMs, "Gelu", renamed<"Gelu">, "a"},
    {kMs, "SkipLayerNormalization", skip_layer_norm, "aaa?aa epsilon"},
    {kMs, "SkipSimplifiedLayerNormalization", skip_rms_norm, "aaa?a epsilon"},
    {kMs, "EmbedLayerNormalization", embed_norm, "a?aaaaaaaa epsilon mask_index_type"},
    {kMs, "QEmbedLayerNormalization", q_embed_norm, "a?aaaaaaaaaaaaaaaaa epsilon"},
    {kMs, "ExpandDims", expand_dims, "aa"},
    {kMs, "Trilu", renamed<"Trilu">, "a?a upper"},
    {kMs, "GatherND", renamed<"GatherND">, "aa"},
    {kMs, "GridSample", renamed<"GridSample">, "aa align_corners mode padding_mode"},
    {kMs, "QuantizeLinear", renamed<"QuantizeLinear">, "aa?a axis"},
    {kMs, "DequantizeLinear", renamed<"DequantizeLinear">, "aa?a axis"},
    {kMs, "MatMulInteger16", renamed<"MatMulInteger">, "aa"},
    {kMs, "Pad", pad, "aa?a mode"},
    {kMs, "Range", range, "aa?a"},
    {kMs, "Unique", unique, "a"},
    {kMs, "CDist", cdist, "aa metric"},
};

}  // namespace

std::span<const Operator> fused_operators() {
  return kFused;
}

}  // namespace loom::core::evaluate
