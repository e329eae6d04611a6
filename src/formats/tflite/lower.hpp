// Translates the operators of a TFLite file to those of ONNX. Shapes are computed here, as the
// interpreter does when it allocates. Shapes that the file has beside computed tensors mean
// nothing. Private to the room; import.hpp is its interface.
//
// Layout. TFLite has channels last, ONNX first. A value of four axes may exist in one order or in
// both. A convolution takes and returns `first`. An operator on values or along one axis takes the
// order that exists, all others the order of the file. So a Transpose is needed only at inputs and
// outputs that are images, and at operators that mix axes.
//
// Quantization. A value that the file stores as int8, uint8 or int16 with a scale is a real number
// here. Constants are decoded, and computed values are rounded to the steps of their scale.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tflite/import.hpp"
#include "formats/tflite/ops.hpp"

namespace loom::core {

class TfliteGraph {
 public:
  TfliteGraph(const TfliteModel& file, const std::string& where, const TfliteOptions& options);
  Result<TfliteAsOnnx> run();

 private:
  using List = std::vector<int64_t>;
  // A value of the graph under way: what it is called there is made when a node is written.
  using Name = int32_t;
  static constexpr Name kNone = -1;
  using Names = std::vector<Name>;
  // An attribute of a node: a list, or one of the others.
  struct Given {
    std::string_view name;
    int64_t whole = 0;
    const List* list = nullptr;
    std::string_view text = {};
    float real = 0;
    bool is_real = false;
  };
  using Attributes = std::initializer_list<Given>;
  static Given list_of(std::string_view name, const List& list) { return {name, 0, &list}; }
  static Given text_of(std::string_view name, std::string_view text) {
    return {name, 0, nullptr, text};
  }
  static Given real_of(std::string_view name, float real) {
    return {name, 0, nullptr, {}, real, true};
  }
  static OnnxAttribute attribute_of(const Given& given);
  enum class Order : uint8_t { plain, first };

  struct Value {
    Name plain = kNone, first = kNone;  // kNone: not there in this order
    List dims;                          // in the order of the file
    OnnxType type = OnnxType::f32;
    bool made = false;
  };
  using Handler = void (TfliteGraph::*)();
  struct Row {
    int code;
    Handler handle;
    size_t least = 1, most = 1, outputs = 1;  // of inputs; outputs 0: any number
  };
  static std::span<const Row> rows();

  // lower.cpp: the walk
  void read_input(int64_t tensor);
  void op(size_t index);
  void check_op(const Row& row);
  void outputs();
  std::string unique(const std::string& name, std::string_view otherwise);
  // Records an error. The first one counts. From then on no node is made, and results are kNone or
  // empty, which no handler indexes without asking failed(). The code is small because an operator
  // of a file may be wrong in hundreds of ways.
  void refuse(std::string_view reason);
  void fail(Error error);
  bool failed() const { return error_.has_value(); }

  // lower_values.cpp: inputs and outputs of the operator under way, by position
  bool has(size_t i) const { return i < op_->inputs.size() && op_->inputs[i] >= 0; }
  double option(size_t field) const { return op_->options[field]; }
  int64_t integer_option(size_t field) const;  // an integer option
  bool flag(size_t field) const { return op_->options[field] != 0; }
  // An input, in the order that its operator can take; and two that are computed value by value.
  struct One {
    Name x;
    const List& dims;
    OnnxType type;
    Order order;
  };
  struct Two {
    Name a, b;
    List dims;  // of the result
    OnnxType type;
    Order order;
  };
  One one(size_t i);
  One plain(size_t i);
  Two two();
  const Value& value(size_t i);
  Value& tensor_value(int64_t tensor);
  const List& dims(size_t i);
  Name in(size_t i, Order order = Order::plain);
  Name in_order(Value& v, Order order);
  Name padded_first(const Value& v);
  Order order_of(std::initializer_list<size_t> inputs);
  Order order_of_all();
  const OnnxTensor* known(Name name) const;
  List integers(size_t i);
  int64_t integer(size_t i);
  int64_t axis(int64_t given, size_t rank);
  List broadcast(const List& a, const List& b);
  void define(size_t output, Name name, const List& dims, Order order = Order::plain,
              OnnxType type = OnnxType::f32);
  Name quantized(Name x, const TfliteQuantization& q, TfliteType type);
  bool same_steps(const TfliteTensor& out) const;
  const TfliteTensor& out_tensor(size_t i = 0) const {
    return file_.tensors[static_cast<size_t>(op_->outputs[i])];
  }

  // lower_constants.cpp: values that the file holds
  OnnxTensor constant_of(int64_t tensor, bool as_number);
  std::vector<std::byte> dense(const TfliteTensor& t, size_t bytes);
  Name bias(size_t i, int64_t count);
  OnnxTensor decoded(const TfliteTensor& t, const OnnxTensor& stored);

  // lower_nodes.cpp: nodes of ONNX
  // Inputs are given in place, or as a list.
  using Inputs = std::initializer_list<Name>;
  Name add(std::string_view kind, Inputs inputs, Attributes attributes = {});
  Name add(std::string_view kind, const Names& inputs, Attributes attributes = {});
  Names add_many(std::string_view kind, std::span<const Name> inputs, Attributes attributes,
                 size_t outputs);
  Names folded(const OnnxNode& node, std::span<const Name> inputs);
  std::string spelled(Name name) const;
  Name keep(OnnxTensor tensor);
  Name number(float value);
  Name list(std::span<const int64_t> values);
  Name list(std::initializer_list<int64_t> values);
  Name moved(Name x, const List& order);
  Name shaped(Name x, const List& dims);
  Name clipped(Name x, float low, float high);
  Name activated(Name x, int64_t function);
  Name gather_at(Name x, const List& indices, int64_t axis);

  // lower_math.cpp
  void unary();
  void binary();
  void compare();
  void floor_pair();
  void squared_difference();
  void function();
  void add_all();
  void select();
  static int64_t last_axis(const One& v);
  Name as_type(Name x, OnnxType type);
  void softmax();
  void reduce();
  void arg();
  void l2_normalization();
  void local_response();
  void cast();
  void same();
  void cumsum();
  void top_k();
  void one_hot();

  // lower_layers.cpp
  struct Window {
    List kernel, stride, dilation, pads, out;  // out: extents of the result
  };
  Window window(int64_t height, int64_t width, List kernel, List stride, List dilation,
                int64_t padding);
  void conv();
  void depthwise();
  void convolve(Name weights, int64_t filters, int64_t groups, const Window& w, int64_t function);
  void transpose_conv();
  void pool();
  void fully_connected();
  void batch_matmul();
  void resize();
  Name nearest(Name x, const List& from, const List& to);
  void blocks();

  // lower_sequence.cpp
  struct Gates {
    Names weights, recurrent, bias;  // input, forget, cell, output
  };
  Name stacked(const Names& gates);
  void check_lstm(size_t first, size_t states);
  Names one_way(size_t first);
  Name ran(Name x, const std::vector<Names>& ways, std::string_view direction, int64_t width);
  void lstm();
  void both_ways_lstm();

  // lower_shapes.cpp
  void reshape();
  void squeeze();
  void expand_dims();
  void transpose();
  void concat();
  void pad();
  void mirror_pad();
  void slice();
  void strided_slice();
  struct Range {
    int64_t start = 0, count = 0, step = 1;
  };
  struct Strides;
  Strides strides(const List& have);
  Name taken(Name x, const std::vector<Range>& ranges, const List& have, Order order);
  void split();
  void parts(size_t from, int64_t axis, const List& widths);
  void pack();
  void unpack();
  void gather();
  void gather_nd();
  void tile();
  void broadcast_to();
  void fill();
  void range();
  void shape();
  void zeros_like();
  void reverse();

  const TfliteModel& file_;
  const std::string& where_;
  const TfliteOptions& options_;
  std::optional<Error> error_;
  const Value nothing_;
  const TfliteOp* op_ = nullptr;  // under way
  std::string place_;             // "operator 3 (CONV_2D)"
  Name next_ = 0;
  int64_t left_ = 0;           // values that may still be made while reading
  std::vector<Value> values_;  // by tensor
  std::map<Name, OnnxTensor> constants_;
  std::map<Name, std::string> inputs_;  // what callers call them
  std::set<std::string> names_;         // that callers see
  TfliteAsOnnx out_;
};

// Places of a value of four axes with channels first, and back.
inline constexpr int64_t kToFirst[] = {0, 3, 1, 2}, kToLast[] = {0, 2, 3, 1};
// The index of an axis of the file in the order with channels first.
inline constexpr int64_t kAxisFirst[] = {0, 2, 3, 1};

constexpr int64_t kTfliteOpset = 20;

Result<std::vector<int64_t>> broadcast_dims(const std::vector<int64_t>& a,
                                            const std::vector<int64_t>& b);
int64_t count_of(const std::vector<int64_t>& dims);

}  // namespace loom::core
