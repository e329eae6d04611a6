// TFLite's names of operators and types. See model.hpp.
#include "base/text.hpp"
#include "formats/tflite/model.hpp"

namespace loom::core {
namespace {

// Indexed by number, up to the last operator that is not of another dialect.
constexpr std::string_view kOpNames =
    "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE "
    "EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D "
    "LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 "
    "RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS "
    "SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER "
    "BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE "
    "UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT "
    "LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG "
    "PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE "
    "EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD "
    "REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV "
    "REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU "
    "SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE "
    "RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE "
    "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM "
    "BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D "
    "IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL "
    "CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS "
    "RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE "
    "RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 "
    "UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT ";

constexpr std::string_view kTypeNames =
    "float32 float16 int32 uint8 int64 string bool int16 complex64 int8 float64 complex128 uint64 "
    "resource variant uint32 uint16 int4 bfloat16 ";

// Word number `i` of a list of words; empty if there are fewer.
std::string_view word(std::string_view words, int i) {
  for (; i > 0 && !words.empty(); --i) words.remove_prefix(words.find(' ') + 1);
  return words.substr(0, words.find(' '));
}

}  // namespace

std::string tflite_op_name(int code) {
  const std::string_view name = code < 0 ? std::string_view() : word(kOpNames, code);
  return name.empty() ? cat("operator number ", code) : std::string(name);
}

std::string_view tflite_type_name(TfliteType type) {
  const auto i = static_cast<int>(type);
  const std::string_view name = i < 0 ? std::string_view() : word(kTypeNames, i);
  return name.empty() ? "a type that is not known" : name;
}

OnnxType onnx_type_of(TfliteType type) {
  switch (type) {
    case TfliteType::f32: return OnnxType::f32;
    case TfliteType::f64: return OnnxType::f64;
    case TfliteType::i8: return OnnxType::i8;
    case TfliteType::u8: return OnnxType::u8;
    case TfliteType::i16: return OnnxType::i16;
    case TfliteType::u16: return OnnxType::u16;
    case TfliteType::i32: return OnnxType::i32;
    case TfliteType::u32: return OnnxType::u32;
    case TfliteType::i64: return OnnxType::i64;
    case TfliteType::u64: return OnnxType::u64;
    case TfliteType::boolean: return OnnxType::boolean;
    default: return OnnxType::undefined;
  }
}

}  // namespace loom::core
