// TFLite files made in memory, field by field, so that a test can make any of them wrong. The
// numbers of fields are those of TFLite's schema.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/tflite/import.hpp"
#include "formats/tflite/ops.hpp"

namespace loom::core::test {

struct TfliteMadeOption {
  int field;
  char kind;  // b a byte, i 32 bits, f a float
  double value;
};

struct TfliteMadeTensor {
  std::vector<int32_t> dims;
  TfliteType type = TfliteType::f32;
  std::vector<uint8_t> data;  // empty: computed, or an input
  std::string name;
  std::vector<float> scale;
  std::vector<int64_t> zero;
  int32_t axis = 0;
  bool variable = false;
  int32_t buffer = -1;  // another than its own
  // For a sparse tensor: a row of segments and indices for its last axis; the others are dense.
  std::vector<int32_t> segments, indices;
};

struct TfliteMadeOp {
  int32_t code;
  std::vector<int32_t> inputs, outputs;
  int kind = 0;  // of its options
  std::vector<TfliteMadeOption> options;
  std::string custom;
};

template <class T>
std::vector<uint8_t> bytes_of_values(const std::vector<T>& values) {
  std::vector<uint8_t> out(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

class TfliteMaker {
 public:
  std::vector<TfliteMadeTensor> tensors;
  std::vector<TfliteMadeOp> ops;
  std::vector<int32_t> inputs, outputs;
  uint32_t version = 3;
  size_t graphs = 1;

  int32_t tensor(std::vector<int32_t> dims, TfliteType type = TfliteType::f32) {
    tensors.push_back({std::move(dims), type});
    tensors.back().name = "t" + std::to_string(tensors.size() - 1);
    return static_cast<int32_t>(tensors.size()) - 1;
  }
  int32_t floats(std::vector<int32_t> dims, const std::vector<float>& values) {
    const int32_t i = tensor(std::move(dims));
    tensors.back().data = bytes_of_values(values);
    return i;
  }
  int32_t integers(const std::vector<int32_t>& values) {
    const int32_t i = tensor({static_cast<int32_t>(values.size())}, TfliteType::i32);
    tensors.back().data = bytes_of_values(values);
    return i;
  }

  std::string file() {
    Builder b;
    std::vector<Part> codes, all, buffers, made_graphs;
    buffers.push_back(table(b, [] {}));
    for (const TfliteMadeOp& op : ops) codes.push_back(code(b, op));
    std::vector<Part> made_ops;
    for (size_t i = 0; i < ops.size(); ++i) made_ops.push_back(made(b, ops[i], i));
    for (const TfliteMadeTensor& t : tensors) all.push_back(made(b, t, buffers));
    const auto list = b.CreateVector(all);
    const auto in = b.CreateVector(inputs), out = b.CreateVector(outputs);
    const auto run = b.CreateVector(made_ops);
    for (size_t i = 0; i < graphs; ++i)
      made_graphs.push_back(table(b, [&] {
        b.AddOffset(at(0), list);
        b.AddOffset(at(1), in);
        b.AddOffset(at(2), out);
        b.AddOffset(at(3), run);
      }));
    const auto coded = b.CreateVector(codes), kept = b.CreateVector(made_graphs);
    const auto held = b.CreateVector(buffers);
    const Part model = table(b, [&] {
      b.AddElement<uint32_t>(at(0), version, 0);
      b.AddOffset(at(1), coded);
      b.AddOffset(at(2), kept);
      b.AddOffset(at(4), held);
    });
    b.Finish(model, "TFL3");
    return {reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize()};
  }

 private:
  using Builder = flatbuffers::FlatBufferBuilder;
  using Part = flatbuffers::Offset<flatbuffers::Table>;

  static flatbuffers::voffset_t at(int field) {
    return static_cast<flatbuffers::voffset_t>(4 + 2 * field);
  }
  template <class Fill>
  static Part table(Builder& b, Fill fill) {
    const auto start = b.StartTable();
    fill();
    return Part(b.EndTable(start));
  }
  static Part code(Builder& b, const TfliteMadeOp& op) {
    const auto custom = b.CreateString(op.custom);
    return table(b, [&] {
      b.AddElement<int8_t>(at(0), static_cast<int8_t>(op.code < 127 ? op.code : 127), 0);
      if (!op.custom.empty()) b.AddOffset(at(1), custom);
      b.AddElement<int32_t>(at(3), op.code, 0);
    });
  }
  static Part made(Builder& b, const TfliteMadeOp& op, size_t index) {
    const auto in = b.CreateVector(op.inputs), out = b.CreateVector(op.outputs);
    const Part options = table(b, [&] {
      for (const TfliteMadeOption& o : op.options) {
        if (o.kind == 'b') b.AddElement<int8_t>(at(o.field), static_cast<int8_t>(o.value));
        if (o.kind == 'i') b.AddElement<int32_t>(at(o.field), static_cast<int32_t>(o.value));
        if (o.kind == 'f') b.AddElement<float>(at(o.field), static_cast<float>(o.value));
      }
    });
    return table(b, [&] {
      b.AddElement<uint32_t>(at(0), static_cast<uint32_t>(index), 0);
      b.AddOffset(at(1), in);
      b.AddOffset(at(2), out);
      if (op.kind == 0) return;
      b.AddElement<uint8_t>(at(3), static_cast<uint8_t>(op.kind), 0);
      b.AddOffset(at(4), options);
    });
  }
  static Part indices(Builder& b, const std::vector<int32_t>& values) {
    const auto list = b.CreateVector(values);
    return table(b, [&] { b.AddOffset(at(0), list); });
  }
  static Part sparsity(Builder& b, const TfliteMadeTensor& t) {
    std::vector<Part> axes;
    std::vector<int32_t> order;
    for (size_t i = 0; i < t.dims.size(); ++i) {
      order.push_back(static_cast<int32_t>(i));
      const bool last = i + 1 == t.dims.size();
      const Part segments = indices(b, t.segments), positions = indices(b, t.indices);
      axes.push_back(table(b, [&] {
        b.AddElement<int8_t>(at(0), last, 0);
        if (!last) b.AddElement<int32_t>(at(1), t.dims[i], 0);
        if (!last) return;
        b.AddElement<uint8_t>(at(2), 1);
        b.AddOffset(at(3), segments);
        b.AddElement<uint8_t>(at(4), 1);
        b.AddOffset(at(5), positions);
      }));
    }
    const auto ordered = b.CreateVector(order);
    const auto listed = b.CreateVector(axes);
    return table(b, [&] {
      b.AddOffset(at(0), ordered);
      b.AddOffset(at(2), listed);
    });
  }
  static Part made(Builder& b, const TfliteMadeTensor& t, std::vector<Part>& buffers) {
    uint32_t buffer = 0;
    if (!t.data.empty()) {
      const auto data = b.CreateVector(t.data);
      buffer = static_cast<uint32_t>(buffers.size());
      buffers.push_back(table(b, [&] { b.AddOffset(at(0), data); }));
    }
    if (t.buffer >= 0) buffer = static_cast<uint32_t>(t.buffer);
    const auto dims = b.CreateVector(t.dims);
    const auto name = b.CreateString(t.name);
    const auto scale = b.CreateVector(t.scale);
    const auto zero = b.CreateVector(t.zero);
    const Part steps = table(b, [&] {
      b.AddOffset(at(2), scale);
      if (!t.zero.empty()) b.AddOffset(at(3), zero);
      b.AddElement<int32_t>(at(6), t.axis, 0);
    });
    const Part sparse = t.segments.empty() ? Part() : sparsity(b, t);
    return table(b, [&] {
      b.AddOffset(at(0), dims);
      b.AddElement<int8_t>(at(1), static_cast<int8_t>(t.type), 0);
      b.AddElement<uint32_t>(at(2), buffer, 0);
      b.AddOffset(at(3), name);
      if (!t.scale.empty()) b.AddOffset(at(4), steps);
      b.AddElement<uint8_t>(at(5), t.variable, 0);
      if (!t.segments.empty()) b.AddOffset(at(6), sparse);
    });
  }
};

}  // namespace loom::core::test
