// The operators that are read, as onnx.ai/onnx/operators defines them. See schema.hpp.
#include "onnx/import/schema.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int kNewest = 1000;

// Inputs: a letter each, that of its types (allows()); a capital stands for one type in all its
// places; + repeats the last one. Result: one of those capitals, or b, l: booleans, int64; c: what
// the attribute "to" or "value" says. Attributes: name:letter, f number, i whole number, g 0 or 1,
// s text, t tensor, F, I and S lists of the same; ! must be given.
struct Signature {
  std::string_view op;
  int since = 1, until = kNewest;  // opsets
  std::string_view inputs;
  size_t least = 1;
  size_t outputs = 1;
  char result = 'T';
  std::string_view attributes;
};

// ONNX lets hidden_size be left out, runtimes do not.
constexpr std::string_view kRecurrent =
    "activation_alpha:F activation_beta:F activations:S clip:f direction:s layout:g "
    "hidden_size:i! ";
constexpr std::string_view kLstm =
    "activation_alpha:F activation_beta:F activations:S clip:f direction:s layout:g "
    "hidden_size:i! input_forget:g ";
constexpr std::string_view kGru =
    "activation_alpha:F activation_beta:F activations:S clip:f direction:s layout:g "
    "hidden_size:i! linear_before_reset:g ";
constexpr std::string_view kConv =
    "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I ";
constexpr std::string_view kBack =
    "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I output_padding:I "
    "output_shape:I ";
constexpr std::string_view kPool =
    "auto_pad:s ceil_mode:g count_include_pad:g kernel_shape:I! pads:I strides:I ";
constexpr std::string_view kDilatedPool =
    "auto_pad:s ceil_mode:g count_include_pad:g kernel_shape:I! pads:I strides:I dilations:I ";
constexpr std::string_view kMaxWindow =
    "auto_pad:s ceil_mode:g dilations:I kernel_shape:I! pads:I storage_order:g strides:I ";
constexpr std::string_view kLpWindow =
    "auto_pad:s ceil_mode:g dilations:I kernel_shape:I! p:i pads:I strides:I ";
constexpr std::string_view kOver = "keepdims:g noop_with_empty_axes:g ";
constexpr std::string_view kBatchNorm = "epsilon:f momentum:f training_mode:g ";
constexpr std::string_view kResize =
    "coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:g extrapolation_value:f "
    "mode:s nearest_mode:s ";
constexpr std::string_view kResizeAxes =
    "antialias:g axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:g "
    "extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s ";
constexpr std::string_view kAttention =
    "is_causal:g kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
    "softmax_precision:i ";
constexpr std::string_view kWindowed =
    "is_causal:g kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i "
    "right_window_size:i scale:f softcap:f softmax_precision:i ";
constexpr size_t kMany = 4096;
constexpr std::string_view kConstant =
    "value:t value_float:f value_floats:F value_int:i value_ints:I value_string:s "
    "value_strings:S ";

// clang-format off
constexpr Signature kSignatures[] = {
    // op, opsets, inputs, least, outputs, result, attributes
    {"Constant", 1, kNewest, "", 0, 1, 'c', kConstant},
    {"ConstantOfShape", 1, kNewest, "l", 1, 1, 'c', "value:t "},
    {"Identity", 1, kNewest, "A", 1, 1, 'A', ""},
    {"Dropout", 1, 11, "F", 1, 2, 'F', "ratio:f "},
    {"Dropout", 12, kNewest, "Ffb", 1, 2, 'F', "seed:i "},
    {"Cast", 1, 18, "a", 1, 1, 'c', "to:i! "},
    {"Cast", 19, kNewest, "a", 1, 1, 'c', "to:i! saturate:g "},
    {"CastLike", 15, 18, "aA", 2, 1, 'A', ""},
    {"CastLike", 19, kNewest, "aA", 2, 1, 'A', "saturate:g "},
    {"SplitToSequence", 11, kNewest, "Ai", 1, 1, 'A', "axis:i keepdims:g "},
    {"SequenceConstruct", 11, kNewest, "A+", 1, 1, 'A', ""},
    {"SequenceAt", 11, kNewest, "Ai", 2, 1, 'A', ""},
    {"SequenceLength", 11, kNewest, "a", 1, 1, 'l', ""},
    {"SequenceInsert", 11, kNewest, "AAi", 2, 1, 'A', ""},
    {"SequenceErase", 11, kNewest, "Ai", 1, 1, 'A', ""},
    {"ConcatFromSequence", 11, kNewest, "A", 1, 1, 'A', "axis:i! new_axis:g "},
    {"GatherND", 11, 11, "Al", 2, 1, 'A', ""},
    {"GatherND", 12, kNewest, "Al", 2, 1, 'A', "batch_dims:i "},
    {"Shape", 1, 14, "a", 1, 1, 'l', ""},
    {"Shape", 15, kNewest, "a", 1, 1, 'l', "start:i end:i "},
    {"Size", 1, kNewest, "a", 1, 1, 'l', ""},
    {"Reshape", 5, 13, "Al", 2, 1, 'A', ""},
    {"Reshape", 14, kNewest, "Al", 2, 1, 'A', "allowzero:g "},
    {"Flatten", 1, kNewest, "A", 1, 1, 'A', "axis:i "},
    {"Squeeze", 1, 12, "A", 1, 1, 'A', "axes:I "},
    {"Squeeze", 13, kNewest, "Al", 1, 1, 'A', ""},
    {"Unsqueeze", 1, 12, "A", 1, 1, 'A', "axes:I! "},
    {"Unsqueeze", 13, kNewest, "Al", 2, 1, 'A', ""},
    {"Transpose", 1, kNewest, "A", 1, 1, 'A', "perm:I "},
    {"Expand", 1, kNewest, "Al", 2, 1, 'A', ""},
    {"Gather", 1, kNewest, "Ai", 2, 1, 'A', "axis:i "},
    {"Slice", 1, 9, "A", 1, 1, 'A', "axes:I ends:I! starts:I! "},
    {"Slice", 10, kNewest, "AIIII", 3, 1, 'A', ""},
    {"Split", 2, 12, "A", 1, kMany, 'A', "axis:i split:I "},
    {"Split", 13, 17, "Al", 1, kMany, 'A', "axis:i "},
    {"Split", 18, kNewest, "Al", 1, kMany, 'A', "axis:i num_outputs:i "},
    {"Pad", 2, 10, "F", 1, 1, 'F', "mode:s pads:I! value:f "},
    {"Pad", 11, 17, "AlA", 2, 1, 'A', "mode:s "},
    {"Pad", 18, kNewest, "AlAi", 2, 1, 'A', "mode:s "},
    {"DepthToSpace", 1, 10, "A", 1, 1, 'A', "blocksize:i! "},
    {"DepthToSpace", 11, kNewest, "A", 1, 1, 'A', "blocksize:i! mode:s "},
    {"SpaceToDepth", 1, kNewest, "A", 1, 1, 'A', "blocksize:i! "},
    {"Concat", 1, kNewest, "A+", 1, 1, 'A', "axis:i! "},
    {"Where", 1, kNewest, "bAA", 3, 1, 'A', ""},
    {"Range", 1, kNewest, "RRR", 3, 1, 'R', ""},
    {"CumSum", 11, kNewest, "Ni", 2, 1, 'N', "exclusive:g reverse:g "},
    {"Trilu", 1, kNewest, "Al", 1, 1, 'A', "upper:g "},
    {"Gemm", 1, kNewest, "GGG", 2, 1, 'G', "alpha:f beta:f transA:g transB:g "},
    {"MatMul", 1, kNewest, "GG", 2, 1, 'G', ""},
    {"Einsum", 12, kNewest, "N+", 1, 1, 'N', "equation:s! "},
    {"Conv", 1, kNewest, "FFF", 2, 1, 'F', kConv},
    {"ConvTranspose", 1, kNewest, "FFF", 2, 1, 'F', kBack},
    {"AveragePool", 1, 18, "F", 1, 1, 'F', kPool},
    {"AveragePool", 19, kNewest, "F", 1, 1, 'F', kDilatedPool},
    {"GlobalAveragePool", 1, kNewest, "F", 1, 1, 'F', ""},
    {"MaxPool", 1, kNewest, "F", 1, 2, 'F', kMaxWindow},
    {"LpPool", 2, kNewest, "F", 1, 1, 'F', kLpWindow},
    {"GlobalMaxPool", 1, kNewest, "F", 1, 1, 'F', ""},
    {"GlobalLpPool", 2, kNewest, "F", 1, 1, 'F', "p:i "},
    {"InstanceNormalization", 6, kNewest, "FFF", 3, 1, 'F', "epsilon:f "},
    {"BatchNormalization", 7, 8, "FFFFF", 5, 5, 'F', "epsilon:f momentum:f spatial:g "},
    {"BatchNormalization", 9, 13, "FFFFF", 5, 5, 'F', "epsilon:f momentum:f "},
    {"BatchNormalization", 14, kNewest, "FUUVV", 5, 3, 'F', kBatchNorm},
    {"LayerNormalization", 17, kNewest, "FFF", 2, 3, 'F', "axis:i epsilon:f stash_type:i "},
    {"RMSNormalization", 23, kNewest, "FW", 2, 1, 'W', "axis:i epsilon:f stash_type:i "},
    {"SimplifiedLayerNormalization", 1, kNewest, "FW", 2, 2, 'W', "axis:i epsilon:f stash_type:i "},
    {"Softmax", 1, kNewest, "F", 1, 1, 'F', "axis:i "},
    {"LogSoftmax", 1, kNewest, "F", 1, 1, 'F', "axis:i "},
    {"RNN", 1, kNewest, "FFFFmF", 3, 2, 'F', kRecurrent},
    {"GRU", 1, kNewest, "FFFFmF", 3, 2, 'F', kGru},
    {"LSTM", 1, kNewest, "FFFFmFFF", 3, 3, 'F', kLstm},
    {"ReduceMean", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceMean", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceSum", 1, 12, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceSum", 13, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceMax", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceMax", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceMin", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceMin", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceL1", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceL1", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceL2", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceL2", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceSumSquare", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceSumSquare", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceLogSum", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceLogSum", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceLogSumExp", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceLogSumExp", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"ReduceProd", 1, 17, "G", 1, 1, 'G', "axes:I keepdims:g "},
    {"ReduceProd", 18, kNewest, "Gl", 1, 1, 'G', kOver},
    {"NonZero", 9, kNewest, "a", 1, 1, 'l', ""},
    {"ArgMax", 1, 11, "N", 1, 1, 'l', "axis:i keepdims:g "},
    {"ArgMax", 12, kNewest, "N", 1, 1, 'l', "axis:i keepdims:g select_last_index:g "},
    {"ArgMin", 1, 11, "N", 1, 1, 'l', "axis:i keepdims:g "},
    {"ArgMin", 12, kNewest, "N", 1, 1, 'l', "axis:i keepdims:g select_last_index:g "},
    {"OneHot", 9, kNewest, "nnA", 3, 1, 'A', "axis:i "},
    {"GatherElements", 11, kNewest, "Ai", 2, 1, 'A', "axis:i "},
    {"Tile", 6, kNewest, "Al", 2, 1, 'A', ""},
    {"LRN", 1, kNewest, "F", 1, 1, 'F', "alpha:f beta:f bias:f size:i! "},
    {"Upsample", 7, 8, "A", 1, 1, 'A', "mode:s scales:F! "},
    {"Upsample", 9, 9, "Af", 2, 1, 'A', "mode:s "},
    {"Resize", 10, 10, "Af", 2, 1, 'A', "mode:s "},
    {"Resize", 11, 17, "Affl", 1, 1, 'A', kResize},
    {"Resize", 18, kNewest, "Affl", 1, 1, 'A', kResizeAxes},
    {"Floor", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Ceil", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Round", 11, kNewest, "F", 1, 1, 'F', ""},
    {"Sign", 9, kNewest, "N", 1, 1, 'N', ""},
    {"Sin", 7, kNewest, "F", 1, 1, 'F', ""},
    {"Cos", 7, kNewest, "F", 1, 1, 'F', ""},
    {"Softsign", 1, kNewest, "F", 1, 1, 'F', ""},
    {"ThresholdedRelu", 10, kNewest, "F", 1, 1, 'F', "alpha:f "},
    {"Xor", 7, kNewest, "BB", 2, 1, 'b', ""},
    {"Clip", 6, 10, "F", 1, 1, 'F', "max:f min:f "},
    {"Clip", 11, kNewest, "NNN", 1, 1, 'N', ""},
    {"PRelu", 7, kNewest, "NN", 2, 1, 'N', ""},
    {"Selu", 6, kNewest, "F", 1, 1, 'F', "alpha:f gamma:f "},
    {"Celu", 12, kNewest, "F", 1, 1, 'F', "alpha:f "},
    {"HardSigmoid", 6, kNewest, "F", 1, 1, 'F', "alpha:f beta:f "},
    {"Sum", 6, kNewest, "F+", 1, 1, 'F', ""},
    {"Mean", 6, kNewest, "F+", 1, 1, 'F', ""},
    {"Relu", 1, kNewest, "S", 1, 1, 'S', ""},
    {"LeakyRelu", 1, kNewest, "F", 1, 1, 'F', "alpha:f "},
    {"Elu", 1, kNewest, "F", 1, 1, 'F', "alpha:f "},
    {"Attention", 23, 23, "FFFaFF", 3, 4, 'F', kAttention},
    {"Attention", 24, 24, "FFFaFFl", 3, 4, 'F', kAttention},
    {"Attention", 25, kNewest, "FFFaFFl", 3, 4, 'F', kWindowed},
    {"Gelu", 20, kNewest, "F", 1, 1, 'F', "approximate:s "},
    {"Mish", 18, kNewest, "F", 1, 1, 'F', ""},
    {"HardSwish", 14, kNewest, "F", 1, 1, 'F', ""},
    {"Sigmoid", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Tanh", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Softplus", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Erf", 1, kNewest, "N", 1, 1, 'N', ""},
    {"Exp", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Log", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Sqrt", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Reciprocal", 1, kNewest, "F", 1, 1, 'F', ""},
    {"Neg", 1, kNewest, "S", 1, 1, 'S', ""},
    {"Abs", 1, kNewest, "N", 1, 1, 'N', ""},
    {"Not", 1, kNewest, "B", 1, 1, 'b', ""},
    {"IsNaN", 9, kNewest, "F", 1, 1, 'b', ""},
    {"Add", 1, kNewest, "NN", 2, 1, 'N', ""},
    {"Sub", 1, kNewest, "NN", 2, 1, 'N', ""},
    {"Mul", 1, kNewest, "NN", 2, 1, 'N', ""},
    {"Div", 1, kNewest, "NN", 2, 1, 'N', ""},
    {"Pow", 1, kNewest, "Pn", 2, 1, 'P', ""},
    {"Max", 1, kNewest, "N+", 1, 1, 'N', ""},
    {"Min", 1, kNewest, "N+", 1, 1, 'N', ""},
    {"Equal", 1, kNewest, "AA", 2, 1, 'b', ""},
    {"Greater", 1, kNewest, "NN", 2, 1, 'b', ""},
    {"GreaterOrEqual", 1, kNewest, "NN", 2, 1, 'b', ""},
    {"Less", 1, kNewest, "NN", 2, 1, 'b', ""},
    {"LessOrEqual", 1, kNewest, "NN", 2, 1, 'b', ""},
    {"And", 1, kNewest, "BB", 2, 1, 'b', ""},
    {"Or", 1, kNewest, "BB", 2, 1, 'b', ""},
};
// clang-format on

bool is_signed(OnnxType t) {
  return is_float(t) || t == OnnxType::i8 || t == OnnxType::i16 || t == OnnxType::i32 ||
         t == OnnxType::i64;
}

// The types that a letter of Signature::inputs stands for, and how to say it.
bool allows(char letter, OnnxType t) {
  switch (letter) {
    case 'l': return t == OnnxType::i64;
    case 'm': return t == OnnxType::i32;
    case 'i':
    case 'I': return t == OnnxType::i32 || t == OnnxType::i64;
    case 'b':
    case 'B': return t == OnnxType::boolean;
    case 'f':
    case 'F':
    case 'U':
    case 'V':
    case 'W': return is_float(t);
    case 'n':
    case 'N': return is_float(t) || is_integer(t);
    case 'S': return is_signed(t);
    case 'P': return is_float(t) || t == OnnxType::i32 || t == OnnxType::i64;
    case 'R': return is_signed(t) && t != OnnxType::i8 && t != OnnxType::f16 && t != OnnxType::bf16;
    case 'G': return is_float(t) || onnx_type_bytes(t) >= 4;
    default: return t != OnnxType::undefined;
  }
}

bool shared_type(char letter) {
  return letter >= 'A' && letter <= 'Z';
}

OnnxAttributeType attribute_type(char letter) {
  switch (letter) {
    case 'f': return OnnxAttributeType::real;
    case 'g':
    case 'i': return OnnxAttributeType::integer;
    case 's': return OnnxAttributeType::text;
    case 't': return OnnxAttributeType::tensor;
    case 'F': return OnnxAttributeType::reals;
    case 'I': return OnnxAttributeType::integers;
    default: return OnnxAttributeType::texts;
  }
}

std::string_view attribute_kind(char letter) {
  switch (letter) {
    case 'f': return "a number";
    case 'g': return "0 or 1";
    case 'i': return "a whole number";
    case 's': return "text";
    case 't': return "a tensor";
    case 'F': return "a list of numbers";
    case 'I': return "a list of whole numbers";
    default: return "a list of texts";
  }
}

// One of Signature::attributes, and the rest of them.
struct Attribute {
  std::string_view name;
  char letter = 'i';
  bool required = false;
};
std::optional<Attribute> next_attribute(std::string_view& list) {
  if (list.empty()) return {};
  const size_t colon = list.find(':'), end = list.find(' ');
  const Attribute out{list.substr(0, colon), list[colon + 1], list[end - 1] == '!'};
  list.remove_prefix(end + 1);
  return out;
}

Status check_attributes(const OnnxNode& node, const Signature& s, int64_t opset) {
  for (const OnnxAttribute& given : node.attributes) {
    std::string_view rest = s.attributes;
    std::optional<Attribute> known = next_attribute(rest);
    while (known && known->name != given.name) known = next_attribute(rest);
    if (!known)
      return unsupported(cat("has no attribute '", printable(given.name), "' in opset ", opset));
    // Other numbers are true to some runtimes and false to others.
    const bool flag = known->letter != 'g' || given.integer == 0 || given.integer == 1;
    if (attribute_type(known->letter) != given.type || !flag)
      return unsupported(
          cat("its attribute '", known->name, "' must be ", attribute_kind(known->letter)));
  }
  std::string_view rest = s.attributes;
  for (auto known = next_attribute(rest); known; known = next_attribute(rest)) {
    if (known->required && node.find(known->name) == nullptr)
      return unsupported(cat("its attribute '", known->name, "' is absent"));
  }
  return {};
}

char letter_of(const Signature& s, size_t input) {
  const bool repeats = s.inputs.ends_with('+');
  const size_t last = s.inputs.size() - (repeats ? 2 : 1);
  return s.inputs[std::min(input, last)];
}

Status check_inputs(const Signature& s, const std::vector<OnnxType>& inputs) {
  const bool repeats = s.inputs.ends_with('+');
  if (!repeats && inputs.size() > s.inputs.size())
    return unsupported(cat("has ", inputs.size(), " inputs, takes ", s.inputs.size()));
  for (size_t i = 0; i < std::max(s.least, inputs.size()); ++i) {
    const OnnxType type = i < inputs.size() ? inputs[i] : OnnxType::undefined;
    if (type == OnnxType::undefined) {
      if (i < s.least || repeats) return unsupported(cat("input ", i, " is absent"));
      continue;
    }
    const char letter = letter_of(s, i);
    if (!allows(letter, type))
      return unsupported(
          cat("input ", i, " holds ", onnx_type_name(type), " values, which it does not take"));
    for (size_t k = 0; k < i && shared_type(letter); ++k) {
      if (letter_of(s, k) == letter && inputs[k] != OnnxType::undefined && inputs[k] != type)
        return unsupported(cat("inputs ", k, " and ", i, " hold ", onnx_type_name(inputs[k]),
                               " and ", onnx_type_name(type), " values, must hold the same"));
    }
  }
  return {};
}

OnnxType result_of(const OnnxNode& node, const Signature& s, const std::vector<OnnxType>& inputs) {
  if (s.result == 'b') return OnnxType::boolean;
  if (s.result == 'l') return OnnxType::i64;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (letter_of(s, i) == s.result) return inputs[i];
  }
  if (const OnnxAttribute* to = node.find("to")) return static_cast<OnnxType>(to->integer);
  if (const OnnxAttribute* v = node.find("value")) return v->tensors[0].type;
  if (node.find("value_int") != nullptr || node.find("value_ints") != nullptr) return OnnxType::i64;
  return OnnxType::f32;
}

}  // namespace

bool is_float(OnnxType t) {
  return t == OnnxType::f16 || t == OnnxType::f32 || t == OnnxType::f64 || t == OnnxType::bf16;
}

bool is_integer(OnnxType t) {
  return t != OnnxType::boolean && onnx_type_bytes(t) > 0 && !is_float(t);
}

bool knows_operator(std::string_view op) {
  return std::ranges::any_of(kSignatures, [&](const Signature& s) { return s.op == op; });
}

Result<OnnxType> check_node(const OnnxNode& node, int64_t opset,
                            const std::vector<OnnxType>& inputs) {
  const Signature* found = nullptr;
  for (const Signature& s : kSignatures) {
    if (s.op == node.op && s.since <= opset && opset <= s.until) found = &s;
  }
  if (found == nullptr)
    return unsupported(cat("opset ", opset, ", which the model imports, has no such operator"));
  LOOM_TRY(check_inputs(*found, inputs));
  if (node.outputs.empty() || node.outputs.size() > found->outputs)
    return unsupported(
        cat("has ", node.outputs.size(), " outputs, must have 1 to ", found->outputs));
  LOOM_TRY(check_attributes(node, *found, opset));
  return result_of(node, *found, inputs);
}

}  // namespace loom::core
