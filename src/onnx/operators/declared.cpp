// Operators that importers read and only the interpreter computes: their rows without a function,
// in every build. The interpreter has functions of the same names, whose rows have no signature of
// their own. See operator.hpp.
#include "onnx/operators/operator.hpp"

namespace loom::core::evaluate {
namespace {

constexpr Operator kDeclared[] = {
    {"", "MatMul", nullptr, "GG>G", "matmul"},
    {"", "Gemm", nullptr, "GG?G>G alpha:f beta:f transA:g transB:g broadcast", "dense"},
    {"", "Einsum", nullptr, "12 N+>N equation:s!"},
    {"", "Conv", nullptr, "FF?F>F auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I",
     "conv"},
    {"", "ConvTranspose", nullptr,
     "FF?F>F auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I output_padding:I "
     "output_shape:I",
     "conv transposed"},
    {"", "MaxPool", nullptr,
     "F>F2 auto_pad:s ceil_mode:g dilations:I kernel_shape:I! pads:I storage_order:g strides:I",
     "pool max"},
    {"", "AveragePool", nullptr,
     "F>F auto_pad:s ceil_mode:g count_include_pad:g kernel_shape:I! pads:I strides:I|19 F>F "
     "auto_pad:s ceil_mode:g count_include_pad:g kernel_shape:I! pads:I strides:I dilations:I",
     "pool average"},
    {"", "LpPool", nullptr,
     "2 F>F auto_pad:s ceil_mode:g dilations:I kernel_shape:I! p:i pads:I strides:I", "pool lp"},
    {"", "GlobalMaxPool", nullptr, "F>F", "pool global_max"},
    {"", "GlobalAveragePool", nullptr, "F>F", "pool global_average"},
    {"", "GlobalLpPool", nullptr, "2 F>F p:i", "pool global_lp"},
    {"", "BatchNormalization", nullptr,
     "FFFFF is_test consumed_inputs|7 FFFFF>F5 epsilon:f momentum:f spatial:g|9 FFFFF>F5 epsilon:f "
     "momentum:f|14 FUUVV>F3 epsilon:f momentum:f training_mode:g",
     "norm batch"},
    {"", "InstanceNormalization", nullptr, "FFF consumed_inputs|6 FFF>F epsilon:f"},
    {"", "LayerNormalization", nullptr, "17 FF?F>F3 axis:i epsilon:f stash_type:i", "norm layer"},
    {"", "RMSNormalization", nullptr, "23 FW>W axis:i epsilon:f stash_type:i", "norm rms"},
    {"", "SimplifiedLayerNormalization", nullptr, "FW>W2 axis:i epsilon:f stash_type:i",
     "norm rms"},
    {"", "LRN", nullptr, "F>F alpha:f beta:f bias:f size:i!"},
    {"", "Softmax", nullptr, "F>F axis:i", "softmax"},
    {"", "LogSoftmax", nullptr, "F>F axis:i", "softmax log"},
    {"", "ArgMax", nullptr, "N>l axis:i keepdims:g|12 N>l axis:i keepdims:g select_last_index:g",
     "arg max"},
    {"", "ArgMin", nullptr, "N>l axis:i keepdims:g|12 N>l axis:i keepdims:g select_last_index:g",
     "arg min"},
    {"", "LSTM", nullptr,
     "FFF?FmFFF>F3 activation_alpha:F activation_beta:F activations:S clip:f direction:s layout:g "
     "hidden_size:i! input_forget:g",
     "recurrent lstm"},
    {"", "GRU", nullptr,
     "FFF?FmF>F2 activation_alpha:F activation_beta:F activations:S clip:f direction:s layout:g "
     "hidden_size:i! linear_before_reset:g output_sequence",
     "recurrent gru"},
    {"", "RNN", nullptr,
     "FFF?FmF>F2 activation_alpha:F activation_beta:F activations:S clip:f direction:s layout:g "
     "hidden_size:i!",
     "recurrent rnn"},
    {"", "Attention", nullptr,
     "23 FFF?aFF>F4 is_causal:g kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f "
     "softcap:f softmax_precision:i|24 FFF?aFFl>F4 is_causal:g kv_num_heads:i q_num_heads:i "
     "qk_matmul_output_mode:i scale:f softcap:f softmax_precision:i|25 FFF?aFFl>F4 is_causal:g "
     "kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i right_window_size:i "
     "scale:f softcap:f softmax_precision:i"},
    {"", "Resize", nullptr,
     "10 Af>A mode:s|11 A?ffl>A coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:g "
     "extrapolation_value:f mode:s nearest_mode:s|18 A?ffl>A antialias:g axes:I "
     "coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:g extrapolation_value:f "
     "keep_aspect_ratio_policy:s mode:s nearest_mode:s",
     "resize"},
    {"", "Upsample", nullptr, "7 A>A mode:s scales:F!|9 Af>A mode:s|10 Af", "resize"},
    {"", "DepthToSpace", nullptr, "A>A blocksize:i!|11 A>A blocksize:i! mode:s", "blocks to_space"},
    {"", "SpaceToDepth", nullptr, "A>A blocksize:i! mode", "blocks to_depth"},
    {"", "SequenceConstruct", nullptr, "11 A+>A"},
    {"", "SequenceInsert", nullptr, "11 AA?i>A"},
    {"", "SequenceErase", nullptr, "11 A?i>A"},
    {"", "SequenceAt", nullptr, "11 Ai>A"},
    {"", "SequenceLength", nullptr, "11 a>l"},
    {"", "SplitToSequence", nullptr, "11 A?i>A axis:i keepdims:g"},
    {"", "ConcatFromSequence", nullptr, "11 A>A axis:i! new_axis:g"},
};

}  // namespace

std::span<const Operator> declared_operators() {
  return kDeclared;
}

}  // namespace loom::core::evaluate
