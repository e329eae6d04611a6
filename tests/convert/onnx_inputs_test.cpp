// ONNX files whose further inputs are integers: masks in arithmetic, and ids of tables. Values are
// computed by hand; tests/outside/onnx_ports.py compares random ones with ONNX Runtime.
#include <gmock/gmock.h>

#include <algorithm>

#include "loom/loom.hpp"
#include "onnx/file/model.hpp"

namespace loom::onnx_inputs {
namespace {

using core::OnnxNode;
using core::OnnxTensor;
using core::OnnxType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Input {
  std::string name;
  std::vector<int64_t> sample;
  OnnxType type = OnnxType::i64;
};

OnnxNode node(const std::string& op, std::vector<std::string> inputs, const std::string& output,
              std::vector<core::OnnxAttribute> attributes = {}) {
  OnnxNode n;
  n.name = output;
  n.op = op;
  n.inputs = std::move(inputs);
  n.outputs = {output};
  n.attributes = std::move(attributes);
  return n;
}

OnnxTensor numbers(const std::string& name, std::vector<int64_t> dims, std::vector<float> values) {
  return core::onnx_tensor(name, std::move(dims), std::span<const float>(values));
}

OnnxTensor ids_tensor(const std::string& name, std::vector<int64_t> dims,
                      std::vector<int64_t> values) {
  return core::onnx_tensor(name, std::move(dims), std::span<const int64_t>(values));
}

core::OnnxAttribute cast_to(OnnxType type) {
  return core::onnx_attribute("to", static_cast<int64_t>(type));
}

core::OnnxValue value(const std::string& name, std::vector<int64_t> sample, OnnxType type) {
  core::OnnxValue v{name, type, true, {{-1, "batch"}}};
  for (const int64_t extent : sample) v.shape.push_back({extent, ""});
  return v;
}

Result<Network> load(const std::vector<Input>& inputs, std::vector<OnnxNode> nodes,
                     std::vector<OnnxTensor> tensors, std::vector<int64_t> output,
                     bool for_training = false) {
  core::OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 17}};
  for (const Input& i : inputs) m.graph.inputs.push_back(value(i.name, i.sample, i.type));
  m.graph.outputs = {value(nodes.back().outputs[0], std::move(output), OnnxType::f32)};
  m.graph.nodes = std::move(nodes);
  m.graph.initializers = std::move(tensors);
  const std::string bytes = *core::onnx_bytes(m);
  LoadOptions options;
  options.for_training = for_training;
  return Network::load(FileBytes{std::as_bytes(std::span(bytes)), "m.onnx"}, options);
}

Tensor filled(const Shape& shape, float with) {
  Tensor t = Tensor::zeros(shape).or_exit();
  std::ranges::fill(t.mutable_values<float>().or_exit(), with);
  return t;
}

Tensor ids(const Shape& shape, std::vector<int64_t> values) {
  Tensor t = Tensor::zeros(shape, DType::int64).or_exit();
  std::copy(values.begin(), values.end(), t.mutable_values<int64_t>().or_exit().begin());
  return t;
}

std::vector<float> run(const Network& net, const std::vector<Tensor>& given) {
  Session session = net.session({.max_batch = given[0].shape()[0]}).or_exit();
  const std::vector<Tensor> made = session.run(given).or_exit();
  const auto v = made[0].values<float>().or_exit();
  return {v.begin(), v.end()};
}

const std::vector<float> kWords = {1, 10, 2, 20, 3, 30, 4, 40}, kKinds = {0, 0, 100, 200};

// Words and types of two tables, the smaller one first; a mask in which only non-zero positions
// count.
Result<Network> encoder(bool mask_first, bool for_training = false) {
  std::vector<Input> inputs = {{"words", {3}}, {"mask", {3}}, {"kinds", {3}}};
  if (mask_first) std::swap(inputs[0], inputs[1]);
  return load(
      inputs,
      {node("Gather", {"kind.table", "kinds"}, "k"), node("Gather", {"word.table", "words"}, "w"),
       node("Add", {"k", "w"}, "sum"), node("Cast", {"mask"}, "seen", {cast_to(OnnxType::boolean)}),
       node("Unsqueeze", {"seen", "two"}, "seen2"),
       node("Where", {"seen2", "sum", "val_none"}, "y")},
      {numbers("word.table", {4, 2}, kWords), numbers("kind.table", {2, 2}, kKinds),
       ids_tensor("two", {1}, {2}), numbers("val_none", {}, {-1})},
      {3, 2}, for_training);
}

TEST(OnnxInputs, IdsOfTablesAndMasksStandBesideTheFirst) {
  for (const bool mask_first : {false, true}) {
    const Network net = encoder(mask_first).or_exit();
    const std::vector<PortInfo>& ports = net.info().inputs;
    ASSERT_EQ(ports.size(), 3U);
    EXPECT_EQ(ports[0].name, "words");
    EXPECT_EQ(ports[0].ids, 4);
    std::vector<Tensor> given = {ids({2, 3}, {0, 1, 2, 3, 3, 3})};
    for (size_t i = 1; i < 3; ++i) {
      const bool kinds = ports[i].name == "kinds";
      EXPECT_EQ(ports[i].ids, kinds ? 2 : 0);
      given.push_back(kinds ? ids({2, 3}, {0, 1, 1, 0, 1, 0}) : ids({2, 3}, {1, 1, 0, 5, 0, 1}));
    }
    EXPECT_THAT(run(net, given), ElementsAre(1, 10, 102, 220, -1, -1, 4, 40, -1, -1, 4, 40));
    given[0] = ids({2, 3}, {0, 1, 2, 3, 4, 3});
    const auto far = net.session({.max_batch = 2}).or_exit().run(given);
    ASSERT_FALSE(far.ok());
    EXPECT_THAT(far.error().message, HasSubstr("id 4 must be from 0 to 3"));
  }
}

TEST(OnnxInputs, BothTablesLearn) {
  const Network net = encoder(false, true).or_exit();
  EXPECT_EQ(net.info().trainable, 12);
  const Tensor words = ids({2, 3}, {0, 1, 2, 3, 3, 3});
  const Dataset data = Dataset::from_arrays(words, Tensor::zeros({2, 3, 2}).or_exit())
                           .or_exit()
                           .with_input("kinds", ids({2, 3}, {0, 1, 1, 0, 1, 0}))
                           .or_exit()
                           .with_input("mask", filled({2, 3}, 1))
                           .or_exit();
  Trainer trainer = Trainer::create(net, {}).or_exit();
  const History history = trainer.fit(data, {.epochs = 3}).or_exit();
  EXPECT_LT(history.epochs.back().train_loss, history.epochs.front().train_loss);
}

// One id a sample, and two tables of one input: ids have a row in each.
TEST(OnnxInputs, OneIdASampleNamesRowsOfTwoTables) {
  const Network net =
      load({{"x", {2}, OnnxType::f32}, {"label", {}}},
           {node("Gather", {"large", "label"}, "a"), node("Gather", {"small", "label"}, "b"),
            node("Add", {"a", "b"}, "c"), node("Add", {"c", "x"}, "y")},
           {numbers("large", {4, 2}, kWords), numbers("small", {2, 2}, kKinds)}, {2})
          .or_exit();
  EXPECT_EQ(net.info().inputs[1].ids, 2);
  const Tensor x = filled({2, 2}, 0.5f);
  EXPECT_THAT(run(net, {x, ids({2, 1}, {1, 0})}), ElementsAre(102.5f, 220.5f, 1.5f, 10.5f));
}

TEST(OnnxInputs, AnInputThatIsIdsAndNumbersIsRefusedByName) {
  const auto net =
      load({{"x", {2}, OnnxType::f32}, {"label", {2}}},
           {node("Gather", {"table", "label"}, "a"),
            node("Cast", {"label"}, "n", {cast_to(OnnxType::f32)}), node("Add", {"x", "n"}, "s"),
            node("Unsqueeze", {"s", "two"}, "u"), node("Add", {"a", "u"}, "y")},
           {numbers("table", {4, 2}, kWords), ids_tensor("two", {1}, {2})}, {2, 2});
  ASSERT_FALSE(net.ok());
  EXPECT_EQ(net.error().code, Code::unsupported);
  EXPECT_THAT(net.error().message,
              HasSubstr("input 'label' names rows of a table and is computed with"));
}

// As RoBERTa counts its positions: those of padding, which is id 1, are row 1, the others begin at
// 2. The table of positions learns too.
TEST(OnnxInputs, PositionsAreCountedFromTheIds) {
  std::vector<OnnxNode> nodes = {node("Equal", {"words", "pad"}, "is"),
                                 node("Not", {"is"}, "real"),
                                 node("Cast", {"real"}, "one", {cast_to(OnnxType::i32)}),
                                 node("CumSum", {"one", "along"}, "so far"),
                                 node("Mul", {"so far", "one"}, "place"),
                                 node("Cast", {"place"}, "wide", {cast_to(OnnxType::i64)}),
                                 node("Add", {"wide", "pad"}, "at"),
                                 node("Gather", {"positions", "at"}, "p"),
                                 node("Gather", {"word.table", "words"}, "w"),
                                 node("Add", {"p", "w"}, "y")};
  const std::vector<OnnxTensor> tensors = {
      numbers("word.table", {4, 2}, kWords),
      numbers("positions", {5, 2}, {0, 0, 100, 100, 200, 200, 300, 300, 400, 400}),
      ids_tensor("pad", {}, {1}), ids_tensor("along", {}, {1})};
  for (const bool for_training : {false, true}) {
    const Network net = load({{"words", {3}}}, nodes, tensors, {3, 2}, for_training).or_exit();
    EXPECT_EQ(net.info().inputs[0].ids, 4);
    EXPECT_EQ(net.info().trainable, 18);
    EXPECT_THAT(run(net, {ids({1, 3}, {3, 1, 0})}), ElementsAre(204, 240, 102, 120, 301, 310));
  }
}

}  // namespace
}  // namespace loom::onnx_inputs
