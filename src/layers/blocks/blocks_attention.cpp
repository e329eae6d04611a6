// Blocks of attention over [B, T, W]:
//   Positions        x + table, learned or of sines and cosines (Vaswani et al., 2017).
//   CrossAttention   queries of x, keys and values of a second input (the same).
//   BiasedAttention  attention within sequences of `length`. A bias per head is added to the
//                    products. alibi: -slope |t - s| (Press, Smith and Lewis, 2022).
//                    relative: a learned value per distance t - s (Shaw, Uszkoreit and Vaswani,
//                    2018, in the form of Raffel et al., 2020, without their buckets).
// MultiHeadAttention has rotary positions, caches and windows, and is faster.
#include <cmath>

#include "base/text.hpp"
#include "layers/blocks/blocks.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/graph_maker.hpp"

namespace loom::core {
namespace {

using List = Extents;

// Scaled products of queries and keys, from projections [B, T, heads * D]: [B, heads, T, S].
struct Heads {
  GraphMaker& g;
  int64_t width, heads;

  int64_t depth() const { return width / heads; }
  // A bias of keys would change all products of a query alike, so it would change no weight.
  GraphValue project(std::string_view name, int64_t in, const GraphValue& x) const {
    return g.add(name, LayerKind::dense, {{"in", in}, {"out", width}, {"bias", name != "k"}}, {x});
  }
  GraphValue apart(std::string_view name, const GraphValue& x) const {
    const GraphValue rows =
        g.add(cat(name, "_rows"), LayerKind::view, {{"shape", List{0, 0, heads, depth()}}}, {x});
    return g.add(cat(name, "_heads"), LayerKind::transpose, {{"axes", List{0, 2, 1, 3}}}, {rows});
  }
  GraphValue products(const GraphValue& q, const GraphValue& k) const {
    const GraphValue scale = g.add("scale", LayerKind::constant,
                                   {{"shape", List{1}},
                                    {"trained", false},
                                    {"fill", "ones"},
                                    {"factor", 1.0 / std::sqrt(static_cast<double>(depth()))}},
                                   {});
    const GraphValue scaled =
        g.add("scaled", LayerKind::binary, {{"function", "mul"}}, {apart("query", q), scale});
    return g.add("products", LayerKind::matmul, {{"transpose_b", true}}, {scaled, apart("key", k)});
  }
  Result<LayerConfig> finish(const GraphValue& products, const GraphValue& v) const {
    const GraphValue weights = g.add("weights", LayerKind::softmax, {}, {products});
    const GraphValue mixed = g.add("mixed", LayerKind::matmul, {}, {weights, apart("value", v)});
    const GraphValue back =
        g.add("back", LayerKind::transpose, {{"axes", List{0, 2, 1, 3}}}, {mixed});
    const GraphValue rows =
        g.add("joined", LayerKind::view, {{"shape", List{0, 0, width}}}, {back});
    return g.finish(g.add("out", LayerKind::dense, {{"in", width}, {"out", width}}, {rows}));
  }
};

Status check_heads(std::string_view block, int64_t width, int64_t heads) {
  if (width % heads == 0) return {};
  return invalid(cat(block, ": heads ", heads, " must divide the width ", width));
}

namespace positions {

using namespace fields::positions;

Result<LayerConfig> expand(const LayerConfig& c) {
  const std::string_view kind = c.text(kKind);
  if (kind != "learned" && kind != "sinusoidal") {
    return invalid(
        cat("Positions: unknown kind '", printable(kind), "'; known are learned, sinusoidal"));
  }
  const bool learned = kind == "learned";
  GraphMaker g;
  const GraphValue table = g.add("table", LayerKind::constant,
                                 {{"shape", List{1, c.integer(kLength), c.integer(kWidth)}},
                                  {"trained", learned},
                                  {"fill", learned ? "normal" : "sinusoidal"},
                                  {"factor", learned ? 0.02 : 1.0}},
                                 {});
  return g.finish(g.add("sum", LayerKind::binary, {{"function", "add"}}, {g.input(), table}));
}

}  // namespace positions

namespace cross_attention {

using namespace fields::cross_attention;

Result<LayerConfig> expand(const LayerConfig& c) {
  const int64_t width = c.integer(kWidth), context = c.integer(kContext);
  LOOM_TRY(check_heads("CrossAttention", width, c.integer(kHeads)));
  GraphMaker g({"input", "context"});
  const Heads heads{g, width, c.integer(kHeads)};
  const GraphValue q = heads.project("q", width, g.input(0));
  const GraphValue k = heads.project("k", context, g.input(1));
  const GraphValue v = heads.project("v", context, g.input(1));
  return heads.finish(heads.products(q, k), v);
}

}  // namespace cross_attention

namespace biased_attention {

using namespace fields::biased_attention;

// Expands a table of 2 T - 1 values per head to the matrix [T, T]; value s - t + T - 1 is that of
// distance s - t. The rows of the table are concatenated and read again in rows that are one value
// shorter. So they shift by one from row to row.
GraphValue relative(GraphMaker& g, int64_t heads, int64_t length) {
  const int64_t row = 2 * length - 1, first = length - 1;
  const GraphValue table = g.add("distances", LayerKind::constant,
                                 {{"shape", List{1, heads, 1, row}}, {"factor", 0.02}}, {});
  const GraphValue rows =
      g.add("repeated", LayerKind::expand, {{"shape", List{1, heads, length, row}}}, {table});
  const GraphValue flat =
      g.add("flat", LayerKind::view, {{"shape", List{1, heads, length * row}}}, {rows});
  const GraphValue moved = g.add(
      "moved", LayerKind::slice,
      {{"starts", List{first}}, {"ends", List{first + length * (row - 1)}}, {"axes", List{2}}},
      {flat});
  const GraphValue skewed =
      g.add("skewed", LayerKind::view, {{"shape", List{1, heads, length, row - 1}}}, {moved});
  return g.add("bias", LayerKind::slice,
               {{"starts", List{0}}, {"ends", List{length}}, {"axes", List{3}}}, {skewed});
}

Result<LayerConfig> expand(const LayerConfig& c) {
  const int64_t width = c.integer(kWidth), count = c.integer(kHeads), length = c.integer(kLength);
  const std::string_view bias = c.text(kBias);
  LOOM_TRY(check_heads("BiasedAttention", width, count));
  if (bias != "alibi" && bias != "relative" && bias != "none") {
    return invalid(cat("BiasedAttention: unknown bias '", printable(bias),
                       "'; known are alibi, relative, none"));
  }
  GraphMaker g;
  const Heads heads{g, width, count};
  const GraphValue q = heads.project("q", width, g.input());
  const GraphValue k = heads.project("k", width, g.input());
  const GraphValue v = heads.project("v", width, g.input());
  std::vector<GraphValue> terms{heads.products(q, k)};
  const auto table = [&](const char* name, List shape) {
    return g.add(name, LayerKind::constant, {{"shape", shape}, {"trained", false}, {"fill", name}},
                 {});
  };
  if (bias == "alibi") terms.push_back(table("alibi", {1, count, length, length}));
  if (bias == "relative") terms.push_back(relative(g, count, length));
  if (c.flag(kCausal)) terms.push_back(table("causal", {1, 1, length, length}));
  if (terms.size() == 1) return heads.finish(terms[0], v);
  return heads.finish(g.add("biased", layer_with(LayerKind::binary, {{"function", "add"}}), terms),
                      v);
}

}  // namespace biased_attention
}  // namespace

extern const LayerDef kPositions;
const LayerDef kPositions = {.kind = LayerKind::graph,
                             .name = "Positions",
                             .fields = fields::positions::kFields,
                             .expand = positions::expand};

extern const LayerDef kCrossAttention;
const LayerDef kCrossAttention = {.kind = LayerKind::graph,
                                  .name = "CrossAttention",
                                  .fields = fields::cross_attention::kFields,
                                  .expand = cross_attention::expand};

extern const LayerDef kBiasedAttention;
const LayerDef kBiasedAttention = {.kind = LayerKind::graph,
                                   .name = "BiasedAttention",
                                   .fields = fields::biased_attention::kFields,
                                   .expand = biased_attention::expand};

}  // namespace loom::core
