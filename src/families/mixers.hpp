// The rules of a family whose blocks have other mixers than attention (DecoderScan, DecoderConv).
// They are a part of its row (family.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace loom::core {

struct MixerRules {
  // The names of settings in config.json. An empty name: the class has no such setting.
  std::string_view inner = {};  // channels of the scan; if absent or null, expand * hidden
  std::string_view expand = "expand";
  std::string_view state = "state_size", kernel = "conv_kernel", rank = "time_step_rank";
  std::string_view heads = {}, head_dim = {}, groups = {};
  std::string_view bias = "use_bias", conv_bias = "use_conv_bias", step_norm_eps = {};
  // Factors of the input, the five parts of its projection as a list, and the output.
  std::string_view scale_in = {}, scales = {}, scale_out = {};
  // The mixers of the blocks: a list of names, or of the indices of blocks with attention. Without
  // both, every block has a scan.
  std::string_view types = {}, attention = {};
  std::string_view type = "linear_attention";  // the name of a block without attention

  // Values when a setting is absent.
  int32_t expand_default = 2, state_default = 16, kernel_default = 4;
  int32_t heads_default = 0, head_dim_default = 64, groups_default = 1;

  // Values that the class fixes.
  bool conv = false;  // the mixers are gated convolutions, with `kernel` and `conv_bias` alone
  bool mlp = true;    // every block has an MLP
  std::string_view norm = "none", step_norm = "none";
};

}  // namespace loom::core
