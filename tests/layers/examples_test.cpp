// The example of every layer kind (LayerDef::example), through the registry: it is a network, it
// holds its kind, and a session runs it with the same bits on every backend.
#include <algorithm>

#include "base/threads/thread_pool.hpp"
#include "grid/builders.hpp"
#include "grid/init.hpp"
#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

class Examples : public ::testing::TestWithParam<const LayerDef*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Examples,
                         ::testing::ValuesIn(layer_table().begin(), layer_table().end()),
                         [](const auto& test) { return std::string(test.param->name); });

bool sketch_holds(const std::vector<LayerSketch>& layers, LayerKind kind) {
  return std::any_of(layers.begin(), layers.end(), [&](const LayerSketch& layer) {
    return layer.kind == kind || sketch_holds(layer.children, kind);
  });
}

TEST_P(Examples, HoldTheirKind) {
  ASSERT_NE(GetParam()->example, nullptr);
  const LayerExample example = GetParam()->example();
  EXPECT_TRUE(sketch_holds(example.layers, GetParam()->kind));
  EXPECT_GT(example.batch, 1);
}

Result<std::vector<float>> run_example(const LayerExample& example, const Ops& ops, int threads) {
  ThreadPool pool(threads, true);
  LOOM_ASSIGN(std::vector<LayerConfig> layers, make_layers(example.layers));
  LOOM_ASSIGN(const NetworkSpec spec, build_row(std::move(layers), example.input));
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(example.batch)));
  LOOM_TRY(init_params(network, DType::f32, 7, pool));
  SessionOptions options;
  options.sequences = example.batch;
  LOOM_ASSIGN(Session session, Session::create(network, ops, pool, network.input(), options));
  std::vector<float> values = random_values(network.input().count(), 3);
  Tensor x;
  x.shape = network.input();
  x.row_stride = x.shape.last();
  x.data = reinterpret_cast<std::byte*>(values.data());
  if (network.vocab() > 0) {
    x.dtype = DType::i32;
    for (int64_t i = 0; i < x.shape.count(); ++i) {
      x.i32()[i] = static_cast<int32_t>(i % network.vocab());
    }
  }
  LOOM_ASSIGN(const Tensor y, session.forward(x, 0, network.cells().size()));
  return std::vector<float>(y.f32(), y.f32() + y.shape.count());
}

TEST_P(Examples, GiveTheSameLivingValuesOnEveryBackend) {
  const LayerExample example = GetParam()->example();
  const Result<std::vector<float>> want = run_example(example, reference_ops(), 1);
  ASSERT_TRUE(want.ok()) << want.error().str();
  const auto alive = [](float v) { return std::isfinite(v) && v != 0.0f; };
  EXPECT_TRUE(std::any_of(want->begin(), want->end(), alive));
  EXPECT_TRUE(std::all_of(want->begin(), want->end(), [](float v) { return std::isfinite(v); }));
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 3}) {
      const Result<std::vector<float>> got = run_example(example, cpu_ops(isa), threads);
      ASSERT_TRUE(got.ok()) << got.error().str();
      EXPECT_EQ(*got, *want) << isa_name(isa) << ", " << threads;
    }
  }
}

TEST_P(Examples, RefuseAnInputOfAnotherWidthInOneLine) {
  const LayerExample example = GetParam()->example();
  Result<std::vector<LayerConfig>> layers = make_layers(example.layers);
  ASSERT_TRUE(layers.ok()) << layers.error().str();
  if (takes_ids(layers->front())) GTEST_SKIP() << "ids have no width";
  std::vector<int64_t> extents;
  for (int i = 0; i < example.input.rank(); ++i) extents.push_back(example.input[i] + 1);
  Shape wider;
  for (size_t i = extents.size(); i-- > 0;) wider = wider.after(extents[i]);
  const Result<NetworkSpec> network = build_row(std::move(*layers), wider);
  ASSERT_FALSE(network.ok());
  EXPECT_EQ(network.error().message.find('\n'), std::string::npos) << network.error().message;
}

// The layers of a kind, with their children.
void find_layers(std::vector<LayerConfig>& layers, LayerKind kind, std::vector<LayerConfig*>& out) {
  for (LayerConfig& layer : layers) {
    if (layer.def->kind == kind) out.push_back(&layer);
    find_layers(layer.children, kind, out);
  }
}

// A text with a default is a word of a list. Names are empty by default.
TEST_P(Examples, RefuseAnUnknownWordInEveryField) {
  if (GetParam()->kind == LayerKind::input) return;  // its text is a name
  const std::span<const FieldDesc> fields = GetParam()->fields;
  for (size_t field = 0; field < fields.size(); ++field) {
    if (fields[field].type != FieldType::text || fields[field].default_text.empty()) continue;
    const LayerExample example = GetParam()->example();
    Result<std::vector<LayerConfig>> layers = make_layers(example.layers);
    ASSERT_TRUE(layers.ok()) << layers.error().str();
    std::vector<LayerConfig*> same_kind;
    find_layers(*layers, GetParam()->kind, same_kind);
    for (LayerConfig* layer : same_kind) layer->set_text(static_cast<int>(field), "zzz");
    const Result<NetworkSpec> row = build_row(std::move(*layers), example.input);
    ASSERT_FALSE(row.ok()) << fields[field].name;
    EXPECT_NE(row.error().message.find("zzz"), std::string::npos)
        << fields[field].name << ": " << row.error().message;
  }
}

}  // namespace
}  // namespace loom::core::test
