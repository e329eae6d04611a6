// The walk over the operators of a TFLite file that says each of them in those of ONNX. Shapes are
// computed here, as the interpreter does when it allocates; those that the file writes down beside
// computed tensors mean nothing. Room-private; the door is import.hpp.
//
// Layout. TFLite has channels last, ONNX first. A value of four axes may be there in one order or
// in both; a convolution takes and gives `first`, what works value by value or along one axis takes
// the order that is there, everything else the order of the file. So a Transpose stands only where
// a picture comes in or goes out, or where axes are mixed.
//
// Quantization. What the file stores as int8, uint8 or int16 with a scale is here the number that
// it stands for: constants are decoded, and computed values rounded to the steps of their scale.
#pragma once

#include <initializer_list>
#include <map>
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
  using Handler = Status (TfliteGraph::*)();
  struct Row {
    int code;
    Handler handle;
    size_t least = 1, most = 1, outputs = 1;  // of inputs; outputs 0: any number
  };
  static std::span<const Row> rows();

  // lower.cpp: the walk
  Status read_input(int64_t tensor);
  Status op(size_t index);
  Status check_op(const Row& row) const;
  Status outputs();
  std::string unique(const std::string& name, std::string_view otherwise);
  Error refuse(std::string_view reason) const;

  // lower_values.cpp: inputs and outputs of the operator under way, by position
  bool has(size_t i) const { return i < op_->inputs.size() && op_->inputs[i] >= 0; }
  double option(size_t field) const { return op_->options[field]; }
  int64_t whole(size_t field) const;  // an option that is a whole number
  bool flag(size_t field) const { return op_->options[field] != 0; }
  // An input, in the order that its operator can take; and two that are computed value by value.
  struct One {
    Name x;
    List dims;
    OnnxType type;
    Order order;
  };
  struct Two {
    Name a, b;
    List dims;  // of the result
    OnnxType type;
    Order order;
  };
  Result<One> one(size_t i);
  Result<One> plain(size_t i);
  Result<Two> two();
  Result<Value*> value(size_t i);
  Result<Value*> tensor_value(int64_t tensor);
  Result<List> dims(size_t i);
  Result<Name> in(size_t i, Order order = Order::plain);
  Result<Name> in_order(Value& v, Order order);
  Result<Name> padded_first(Value& v);
  Result<Order> order_of(std::initializer_list<size_t> inputs);
  Result<Order> order_of_all();
  const OnnxTensor* known(Name name) const;
  Result<List> integers(size_t i);
  Result<int64_t> integer(size_t i);
  Result<int64_t> axis(int64_t given, size_t rank) const;
  Status define(size_t output, Name name, List dims, Order order = Order::plain,
                OnnxType type = OnnxType::f32);
  Result<Name> quantized(Name name, const TfliteQuantization& q, TfliteType type);
  bool same_steps(const TfliteTensor& out) const;
  const TfliteTensor& out_tensor(size_t i = 0) const {
    return file_.tensors[static_cast<size_t>(op_->outputs[i])];
  }

  // lower_constants.cpp: values that the file holds
  Result<OnnxTensor> constant_of(int64_t tensor, bool as_number);
  Result<std::vector<std::byte>> dense(const TfliteTensor& t, size_t bytes);
  Result<Name> bias(size_t i, int64_t count);
  Result<OnnxTensor> decoded(const TfliteTensor& t, OnnxTensor stored);

  // lower_nodes.cpp: nodes of ONNX
  Result<Name> add(std::string_view kind, const Names& inputs, Attributes attributes = {});
  Result<Names> add_many(std::string_view kind, const Names& inputs, Attributes attributes,
                         size_t outputs);
  Result<Names> folded(const OnnxNode& node, const Names& inputs);
  std::string spelled(Name name) const;
  Name keep(OnnxTensor tensor);
  Name number(float value);
  Name list(const List& values);
  Result<Name> moved(Name x, const List& order);
  Result<Name> shaped(Name x, const List& dims);
  Result<Name> clipped(Name x, float low, float high);
  Result<Name> activated(Name x, int64_t function);
  Result<Name> at_places(Name x, const List& places, int64_t axis);

  // lower_math.cpp
  Status unary();
  Status binary();
  Status compare();
  Status floor_pair();
  Status squared_difference();
  Status function();
  Status add_all();
  Status select();
  Status softmax();
  Status reduce();
  Status arg();
  Status l2_normalization();
  Status local_response();
  Status cast();
  Status same();
  Status cumsum();
  Status top_k();
  Status one_hot();

  // lower_layers.cpp
  struct Window {
    List kernel, stride, dilation, pads, out;  // out: extents of the result
  };
  Result<Window> window(int64_t height, int64_t width, List kernel, List stride, List dilation,
                        int64_t padding) const;
  Status conv();
  Status depthwise();
  Status convolve(Name weights, int64_t filters, int64_t groups, const Window& w, int64_t function);
  Status transpose_conv();
  Status pool();
  Status fully_connected();
  Status batch_matmul();
  Status resize();
  Result<Name> nearest(Name x, const List& from, const List& to);
  Status blocks();

  // lower_sequence.cpp
  struct Gates {
    Names weights, recurrent, bias;  // input, forget, cell, output
  };
  Result<Name> stacked(const Names& gates);
  Status check_lstm(size_t first, size_t states) const;
  Result<Names> one_way(size_t first);
  Result<Name> ran(Name x, const std::vector<Names>& ways, std::string_view direction,
                   int64_t width);
  Status lstm();
  Status both_ways_lstm();

  // lower_shapes.cpp
  Status reshape();
  Status squeeze();
  Status expand_dims();
  Status transpose();
  Status concat();
  Status pad();
  Status mirror_pad();
  Status slice();
  Status strided_slice();
  struct Range {
    int64_t start = 0, count = 0, step = 1;
  };
  struct Strides;
  Result<Strides> strides(const List& have);
  Result<Name> taken(Name x, const std::vector<Range>& ranges, const List& have, Order order);
  Status split();
  Status parts(size_t from, int64_t axis, const List& widths);
  Status pack();
  Status unpack();
  Status gather();
  Status gather_nd();
  Status tile();
  Status broadcast_to();
  Status fill();
  Status range();
  Status shape();
  Status zeros_like();
  Status reverse();

  const TfliteModel& file_;
  const std::string& where_;
  const TfliteOptions& options_;
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
// Where an axis of the file lies with channels first.
inline constexpr int64_t kAxisFirst[] = {0, 2, 3, 1};

constexpr int64_t kTfliteOpset = 20;

Result<std::vector<int64_t>> broadcast_dims(const std::vector<int64_t>& a,
                                            const std::vector<int64_t>& b);
int64_t count_of(const std::vector<int64_t>& dims);

}  // namespace loom::core
