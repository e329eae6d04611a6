#include "llm/decoder_block.hpp"

namespace loom::core {
namespace {

struct PartRole {
  BlockPart part;
  std::string_view name;  // in the layer
  DecoderRole role;
};
constexpr PartRole kRoles[] = {
    {BlockPart::attention_norm, "gamma", DecoderRole::attention_norm},
    {BlockPart::attention_norm, "beta", DecoderRole::attention_norm_bias},
    {BlockPart::attention, "q", DecoderRole::q},
    {BlockPart::attention, "k", DecoderRole::k},
    {BlockPart::attention, "v", DecoderRole::v},
    {BlockPart::attention, "o", DecoderRole::o},
    {BlockPart::attention, "q_bias", DecoderRole::q_bias},
    {BlockPart::attention, "k_bias", DecoderRole::k_bias},
    {BlockPart::attention, "v_bias", DecoderRole::v_bias},
    {BlockPart::attention, "o_bias", DecoderRole::o_bias},
    {BlockPart::attention, "q_norm", DecoderRole::q_norm},
    {BlockPart::attention, "k_norm", DecoderRole::k_norm},
    {BlockPart::attention, "q_norm_bias", DecoderRole::q_norm_bias},
    {BlockPart::attention, "k_norm_bias", DecoderRole::k_norm_bias},
    {BlockPart::attention, "sinks", DecoderRole::sinks},
    {BlockPart::attention, "q_down", DecoderRole::q_down},
    {BlockPart::attention, "q_down_norm", DecoderRole::q_down_norm},
    {BlockPart::attention, "q_up", DecoderRole::q_up},
    {BlockPart::attention, "kv_down", DecoderRole::kv_down},
    {BlockPart::attention, "kv_down_norm", DecoderRole::kv_down_norm},
    {BlockPart::attention, "k_up", DecoderRole::k_up},
    {BlockPart::attention, "v_up", DecoderRole::v_up},
    {BlockPart::attention, "sub_norm", DecoderRole::attention_sub_norm},
    {BlockPart::scan, "in", DecoderRole::mixer_in},
    {BlockPart::scan, "in_bias", DecoderRole::mixer_in_bias},
    {BlockPart::scan, "conv", DecoderRole::mixer_conv},
    {BlockPart::scan, "conv_bias", DecoderRole::mixer_conv_bias},
    {BlockPart::scan, "select", DecoderRole::mixer_select},
    {BlockPart::scan, "step", DecoderRole::mixer_step},
    {BlockPart::scan, "step_bias", DecoderRole::mixer_step_bias},
    {BlockPart::scan, "A_log", DecoderRole::mixer_rates},
    {BlockPart::scan, "D", DecoderRole::mixer_through},
    {BlockPart::scan, "step_norm", DecoderRole::mixer_step_norm},
    {BlockPart::scan, "b_norm", DecoderRole::mixer_b_norm},
    {BlockPart::scan, "c_norm", DecoderRole::mixer_c_norm},
    {BlockPart::scan, "norm", DecoderRole::mixer_norm},
    {BlockPart::scan, "out", DecoderRole::mixer_out},
    {BlockPart::scan, "out_bias", DecoderRole::mixer_out_bias},
    {BlockPart::conv, "in", DecoderRole::mixer_in},
    {BlockPart::conv, "in_bias", DecoderRole::mixer_in_bias},
    {BlockPart::conv, "conv", DecoderRole::mixer_conv},
    {BlockPart::conv, "conv_bias", DecoderRole::mixer_conv_bias},
    {BlockPart::conv, "out", DecoderRole::mixer_out},
    {BlockPart::conv, "out_bias", DecoderRole::mixer_out_bias},
    {BlockPart::attention_post_norm, "gamma", DecoderRole::attention_post_norm},
    {BlockPart::mlp_norm, "gamma", DecoderRole::mlp_norm},
    {BlockPart::mlp_norm, "beta", DecoderRole::mlp_norm_bias},
    {BlockPart::mlp, "gate", DecoderRole::gate},
    {BlockPart::mlp, "up", DecoderRole::up},
    {BlockPart::mlp, "down", DecoderRole::down},
    {BlockPart::mlp, "gate_bias", DecoderRole::gate_bias},
    {BlockPart::mlp, "up_bias", DecoderRole::up_bias},
    {BlockPart::mlp, "down_bias", DecoderRole::down_bias},
    {BlockPart::mlp, "sub_norm", DecoderRole::mlp_sub_norm},
    {BlockPart::experts, "router", DecoderRole::router},
    {BlockPart::experts, "expert_gate", DecoderRole::expert_gate},
    {BlockPart::experts, "expert_up", DecoderRole::expert_up},
    {BlockPart::experts, "expert_down", DecoderRole::expert_down},
    {BlockPart::experts, "choice_bias", DecoderRole::choice_bias},
    {BlockPart::experts, "shared_gate", DecoderRole::shared_gate},
    {BlockPart::experts, "shared_up", DecoderRole::shared_up},
    {BlockPart::experts, "shared_down", DecoderRole::shared_down},
    {BlockPart::experts, "shared_router", DecoderRole::shared_router},
    {BlockPart::experts, "router_bias", DecoderRole::router_bias},
    {BlockPart::experts, "expert_gate_bias", DecoderRole::expert_gate_bias},
    {BlockPart::experts, "expert_up_bias", DecoderRole::expert_up_bias},
    {BlockPart::experts, "expert_down_bias", DecoderRole::expert_down_bias},
    {BlockPart::up, "weight", DecoderRole::up},
    {BlockPart::up, "bias", DecoderRole::up_bias},
    {BlockPart::down, "weight", DecoderRole::down},
    {BlockPart::down, "bias", DecoderRole::down_bias},
    {BlockPart::mlp_post_norm, "gamma", DecoderRole::mlp_post_norm},
};

// Adds nodes to one cell after another.
class NodeList {
 public:
  void cell(int64_t l) { cell_ = l, child_ = 0; }
  // Returns the value of the new node, for graphs.
  GraphValue add(BlockPart part, std::vector<GraphValue> reads = {}) {
    nodes.push_back({part, cell_, child_, std::move(reads)});
    return {child_++, 0};
  }
  std::vector<BlockNode> nodes;

 private:
  int64_t cell_ = 0;
  int child_ = 0;
};

BlockPart mixer_part(BlockMixer mixer) {
  return mixer == BlockMixer::scan   ? BlockPart::scan
         : mixer == BlockMixer::conv ? BlockPart::conv
                                     : BlockPart::attention;
}

// x + attention(norm(x)), then the same with the MLP. Either norm, before or after, may be absent.
// Another mixer may be in the place of attention, and a block may lack one of the two.
void add_serial(const DecoderConfig& c, const DecoderLayer& own, bool experts, NodeList& list) {
  if (own.mixer != BlockMixer::none) {
    list.cell(kAttentionCell);
    if (c.pre_norms) list.add(BlockPart::attention_norm);
    list.add(mixer_part(own.mixer));
    if (c.post_norms) list.add(BlockPart::attention_post_norm);
  }
  if (!own.mlp) return;
  list.cell(kMlpCell);
  if (c.pre_norms) list.add(BlockPart::mlp_norm);
  if (experts) {
    list.add(BlockPart::experts);
  } else if (c.gated_mlp) {
    list.add(BlockPart::mlp);
  } else {
    list.add(BlockPart::up);
    list.add(BlockPart::down);
  }
  if (c.post_norms) list.add(BlockPart::mlp_post_norm);
}

// x + attention(norm(x)) + mlp(norm(x)).
void add_parallel(const DecoderConfig& c, NodeList& list) {
  const bool shared = c.residual == ResidualKind::shared_norm;
  const GraphValue x;
  list.cell(kParallelCell);
  GraphValue in = list.add(BlockPart::attention_norm, {x});
  const GraphValue attention = list.add(BlockPart::attention, {in});
  GraphValue sum;
  if (shared) sum = list.add(BlockPart::sum, {x, attention});
  if (!shared) in = list.add(BlockPart::mlp_norm, {x});
  GraphValue mlp;
  if (c.gated_mlp) {
    mlp = list.add(BlockPart::mlp, {in});
  } else {
    mlp = list.add(BlockPart::down, {list.add(BlockPart::up, {in})});
  }
  if (!shared) sum = list.add(BlockPart::sum, {x, attention});
  list.add(BlockPart::sum, {sum, mlp});
}

}  // namespace

std::vector<BlockNode> block_nodes(const DecoderConfig& config, int64_t block) {
  NodeList list;
  if (config.residual == ResidualKind::serial) {
    add_serial(config, config.layer(block), config.has_experts(block), list);
  } else {
    add_parallel(config, list);
  }
  return std::move(list.nodes);
}

DecoderRole block_role(BlockPart part, std::string_view name) {
  for (const PartRole& row : kRoles)
    if (row.part == part && row.name == name) return row.role;
  return DecoderRole::o;
}

}  // namespace loom::core
