// Every field of a layer is in the written file, or the layer is refused with the name of the
// field. The ONNX interpreter runs the files for comparison with the network.
#include <algorithm>

#include "backend/cpu/cpu.hpp"
#include "formats/onnx_network_testing.hpp"
#include "layers/core/fields.hpp"
#include "onnx/interpreter/evaluator.hpp"

namespace loom::core::test::fields {
namespace {

constexpr int64_t kBatch = 3;

// Cells in a row over samples of this shape, with random parameters.
Result<Network> network_of(const std::vector<LayerConfig>& layers, const Shape& sample,
                           ThreadPool& pool) {
  GridSpec grid(1, 1, std::ssize(layers), 1);
  for (int64_t i = 0; i < std::ssize(layers); ++i)
    LOOM_TRY(grid.put({0, 0, i, 0}, {layers[static_cast<size_t>(i)]}));
  LOOM_ASSIGN(Network network, Network::finalize(grid, sample.after(kBatch)));
  fill_random(network, pool);
  return network;
}

// The output of the written file for the input, by the interpreter.
Result<std::vector<float>> evaluated(const OnnxModel& model, const Network& network,
                                     const std::vector<std::byte>& x, ThreadPool& pool) {
  LOOM_ASSIGN(const std::string bytes, onnx_bytes(model));
  LOOM_ASSIGN(
      evaluate::Evaluator graph,
      evaluate::Evaluator::load(FileRef::of_bytes("net.onnx", std::as_bytes(std::span(bytes))),
                                cpu_ops(best_isa()), pool));
  evaluate::Dims dims;
  for (int i = 0; i < network.input().rank(); ++i) dims.push_back(network.input()[i]);
  const bool ids = takes_ids(network.cells()[0].node.config);
  LOOM_ASSIGN(evaluate::Value in,
              evaluate::Value::make(graph.memory(), ids ? OnnxType::i64 : OnnxType::f32, dims));
  for (int64_t i = 0; i < network.input().count(); ++i) {
    if (ids) in.data<int64_t>()[i] = reinterpret_cast<const int32_t*>(x.data())[i];
    if (!ids) in.data<float>()[i] = reinterpret_cast<const float*>(x.data())[i];
  }
  std::vector<evaluate::Slot> inputs;
  inputs.push_back(evaluate::Slot::of(std::move(in)));
  LOOM_ASSIGN(const std::vector<evaluate::Slot> outputs, graph.run(std::move(inputs)));
  const evaluate::Value& y = outputs[0].tensor;
  return std::vector<float>(y.data<float>(), y.data<float>() + y.count());
}

void expect_same(const OnnxModel& model, const Network& network, ThreadPool& pool) {
  const std::vector<std::byte> x = random_input(network);
  const auto got = evaluated(model, network, x, pool);
  ASSERT_TRUE(got.ok()) << got.error().str();
  expect_close(*got, run_network(network, pool, x), 2e-5f);
}

struct Written {
  const char *name, *input, *layer;
  const char* error;  // null: it is written, and computes the same
};

const Written kWritten[] = {
    {"scale", "[6, 8]",
     R"({"type": "MultiHeadAttention", "width": 8, "heads": 2, "kv_heads": 2, "head_dim": 4,
         "scale": 1.7})",
     nullptr},
    {"soft_cap", "[6, 8]",
     R"({"type": "MultiHeadAttention", "width": 8, "heads": 2, "kv_heads": 1, "head_dim": 4,
         "soft_cap": 0.2, "scale": 2})",
     nullptr},
    {"sub_norm", "[6, 8]",
     R"({"type": "MultiHeadAttention", "width": 8, "heads": 2, "kv_heads": 2, "head_dim": 4,
         "sub_norm": true, "sub_norm_eps": 0.3, "out_bias": true, "qk_norm": true})",
     nullptr},
    {"rope_width", "[6, 8]",
     R"({"type": "MultiHeadAttention", "width": 8, "heads": 2, "kv_heads": 2, "head_dim": 6,
         "rope_width": 4, "rope_theta": 50})",
     nullptr},
    {"rope_scaling", "[6, 8]",
     R"({"type": "MultiHeadAttention", "width": 8, "heads": 2, "kv_heads": 2, "head_dim": 4,
         "rope_scaling": "linear", "rope_factor": 3})",
     nullptr},
    {"sub_norm of SwiGLU", "[4, 6]",
     R"({"type": "SwiGLU", "width": 6, "inner": 9, "sub_norm": true, "sub_norm_eps": 0.2})",
     nullptr},
    {"sub_norm of SwiGLU with biases", "[6]",
     R"({"type": "SwiGLU", "width": 6, "inner": 9, "bias": true, "sub_norm": true})", nullptr},
    {"soft_cap of Dense", "[5]",
     R"({"type": "Dense", "in": 5, "out": 7, "activation": "relu", "soft_cap": 0.4})", nullptr},
    {"scale of Dense", "[5]",
     R"({"type": "Dense", "in": 5, "out": 7, "soft_cap": 0.4, "scale": 1.7})", nullptr},
    {"scale of Residual", "[5]",
     R"({"type": "Residual", "scale": 0.3, "children": [{"type": "Dense", "in": 5, "out": 5}]})",
     nullptr},
    {"LayerNorm without bias", "[5]", R"({"type": "LayerNorm", "width": 5, "bias": false})",
     nullptr},
    {"LayerNorm without weight", "[5]", R"({"type": "LayerNorm", "width": 5, "weight": false})",
     nullptr},
    {"LayerNorm alone", "[5]",
     R"({"type": "LayerNorm", "width": 5, "weight": false, "bias": false})", nullptr},
    {"padding within the kernel", "[2, 9]",
     R"({"type": "Pool", "kernel": 3, "padding": 2, "kind": "average"})", nullptr},
    {"padding beyond the kernel", "[2, 9]",
     R"({"type": "Pool", "kernel": 2, "dilation": 4, "padding": 3})",
     "cell (0, 0, 0, 0) (Pool): padding 3 must be below the kernel, 2, in ONNX; put a Pad before "
     "it"},
    {"output_padding above the stride", "[2, 5]",
     R"({"type": "ConvTransposed1D", "channels": 2, "filters": 3, "dilation": 3, "stride": 2,
         "output_padding": 2})",
     "cell (0, 0, 0, 0) (ConvTransposed1D): output_padding 2 must be below the stride, 2, in "
     "ONNX; lower it, or raise the stride"},
};

TEST(OnnxFields, AreWrittenOrRefusedByName) {
  ThreadPool pool(1);
  for (const Written& c : kWritten) {
    SCOPED_TRACE(c.name);
    const auto spec = parse_network(
        cat("{\"loom\": 1, \"input\": ", c.input, ", \"layers\": [", c.layer, "]}"), "net");
    ASSERT_TRUE(spec.ok()) << spec.error().str();
    auto network = Network::finalize(spec->grid, spec->input.after(kBatch));
    ASSERT_TRUE(network.ok()) << network.error().str();
    fill_random(*network, pool);
    const auto model = export_onnx(*network, spec->input);
    if (c.error != nullptr) {
      ASSERT_FALSE(model.ok());
      EXPECT_EQ(model.error().str(), c.error);
      continue;
    }
    ASSERT_TRUE(model.ok()) << model.error().str();
    expect_same(*model, *network, pool);
  }
}

// Changes the value of a field; returns false if that would change only shapes.
bool change(LayerConfig& layer, size_t field) {
  const FieldDesc& desc = layer.def->fields[field];
  const double now = layer.values[field].number;
  if (desc.type == FieldType::boolean) layer.values[field] = FieldValue(now == 0 ? 1 : 0);
  if (desc.type == FieldType::real)
    layer.values[field] = FieldValue(std::min(desc.max, std::max(desc.min, now * 0.7 + 0.3)));
  return desc.type == FieldType::boolean || desc.type == FieldType::real;
}

TEST(OnnxFields, OfEveryKindAwayFromTheirDefaultsAreWrittenOrRefusedByName) {
  ThreadPool pool(1);
  int written = 0, refused = 0;
  for (const LayerDef* def : layer_table()) {
    if (def->example == nullptr) continue;
    const LayerExample example = def->example();
    const auto made = make_layers(example.layers);
    ASSERT_TRUE(made.ok()) << made.error().str();
    const auto usual = network_of(*made, example.input, pool);
    if (!usual.ok() || !export_onnx(*usual, example.input).ok()) continue;
    for (size_t i = 0; i < def->fields.size(); ++i) {
      SCOPED_TRACE(cat(def->name, " ", def->fields[i].name));
      std::vector<LayerConfig> layers = *made;
      const auto mine = std::find_if(layers.begin(), layers.end(),
                                     [&](const LayerConfig& l) { return l.def == def; });
      if (mine == layers.end() || !change(*mine, i)) continue;
      const auto network = network_of(layers, example.input, pool);
      if (!network.ok()) continue;
      const auto model = export_onnx(*network, example.input);
      if (!model.ok()) {
        EXPECT_NE(model.error().str().find(def->fields[i].name), std::string::npos)
            << model.error().str();
        ++refused;
        continue;
      }
      expect_same(*model, *network, pool);
      ++written;
    }
  }
  EXPECT_GT(written, 30);
  EXPECT_LE(refused, written / 4);
}

TEST(FieldReader, NamesTheFirstFieldThatNobodyReadUnlessItIsAtItsDefault) {
  const auto layer = make_layer(LayerKind::swiglu, {{"width", 4}, {"sub_norm", true}});
  ASSERT_TRUE(layer.ok());
  FieldReader fields(*layer);
  EXPECT_EQ(fields.check_all_read("X").error().message,
            "the field width has no form in X; give it its default, 1");
  fields.skip({"width"});
  EXPECT_EQ(fields.check_all_read("X").error().message,
            "the field sub_norm has no form in X; give it its default, 0");
  EXPECT_TRUE(fields.flag("sub_norm"));
  EXPECT_TRUE(fields.check_all_read("X").ok());
}

}  // namespace
}  // namespace loom::core::test::fields
