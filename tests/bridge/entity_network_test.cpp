// Networks in .entity files. A mapped network gives the same bits as the saved one. Saving again
// gives the same file. A mismatch is refused with its text. Damage is found when a session first
// uses a parameter, not before.
#include "bridge/entity_network.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "bridge/network_json.hpp"
#include "bridge/network_source.hpp"
#include "dtype/samples.hpp"
#include "grid/init.hpp"
#include "grid/session.hpp"
#include "io/entity_testing.hpp"
#include "lab/training_hash.hpp"

namespace loom::core {
namespace {

using test::AlignedBytes;
using test::TemporaryFolder;

ThreadPool& pool() {
  static ThreadPool threads(2);
  return threads;
}

// Shared weights, links, feedback, number types of single cells, disabled cells, nested containers.
constexpr const char* kNetworks[] = {
    R"({"loom":1,"grid":[1,1,4,1],"input":[6],"cells":[
      {"at":[0,0,0,0],"type":"Dense","in":6,"out":6,"activation":"tanh","dtype":"int4"},
      {"at":[0,0,1,0],"type":"Dense","in":6,"out":6,"shared_with":[0,0,0,0]},
      {"at":[0,0,2,0],"type":"RMSNorm","width":6,"frozen":["gamma"]},
      {"at":[0,0,3,0],"type":"Dense","in":6,"out":3,"link":{"from":[0,0,0,0]},"dtype":"uint8"}]})",
    R"({"loom":1,"grid":[1,1,3,1],"input":[5],"cells":[
      {"at":[0,0,0,0],"type":"Dense","in":5,"out":5,"activation":"tanh","dtype":"float64"},
      {"at":[0,0,1,0],"type":"Residual","link":{"from":[0,0,2,0],"feedback":true}},
      {"at":[0,0,2,0],"type":"Dense","in":5,"out":5,"dtype":"nvfp4"}]})",
    R"({"loom":1,"grid":[2,1,2,1],"input":[4],"cells":[
      {"at":[0,0,0,0],"type":"Dense","in":4,"out":18},
      {"at":[0,0,1,0],"type":"Dense","in":18,"out":18,"disabled":true},
      {"at":[1,0,0,0],"type":"Residual","children":[{"type":"RMSNorm","width":18},
        {"type":"Sequential","children":[{"type":"Dense","in":18,"out":7,"activation":"relu"},
          {"type":"Parallel","combine":"concat","children":[{"type":"Dense","in":7,"out":9},
            {"type":"Dense","in":7,"out":9}]}]}]},
      {"at":[1,0,1,0],"type":"Dense","in":18,"out":2,"dtype":"bfloat16"}]})",
    R"({"loom":1,"grid":[1,1,3,1],"input":[5],"cells":[
      {"at":[0,0,0,0],"type":"Residual","dtype":"int8","children":[{"type":"LayerNorm","width":5},
        {"type":"SwiGLU","width":5,"inner":8,"bias":true}]},
      {"at":[0,0,1,0],"type":"Residual","shared_with":[0,0,0,0],"children":[
        {"type":"LayerNorm","width":5},{"type":"SwiGLU","width":5,"inner":8,"bias":true}]},
      {"at":[0,0,2,0],"type":"Dense","in":5,"out":2}]})",
    R"({"loom":1,"grid":[1,1,2,1],"input":[5],"cells":[
      {"at":[0,0,0,0],"type":"Residual","dtype":"q4_0","children":[
        {"type":"SwiGLU","width":5,"inner":8}],"adapters":[
          {"name":"one","weights":"0/up","rank":2,"scale":0.75},
          {"name":"two","weights":["0/*"],"rank":1,"dropout":0.125}]},
      {"at":[0,0,1,0],"type":"Dense","in":5,"out":2,"adapters":[{"weights":"weight"}]}]})"};

struct WrittenFile {
  NetworkSpec spec;
  Network network;
};

WrittenFile make(const std::string& text, DType dtype = DType::f32) {
  Result<NetworkSpec> spec = parse_network(text, "net");
  EXPECT_TRUE(spec.ok()) << spec.error().str();
  Result<Network> network = Network::finalize(spec->grid, spec->input.after(2));
  EXPECT_TRUE(network.ok()) << network.error().str();
  for (size_t i = 0; i < network->params().size(); ++i) {
    const Param& p = network->params()[i];
    const int index = static_cast<int>(i);
    const int64_t cols = p.spec.matrix() ? p.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      init_values(*network, index, 5, first * cols, count * cols, out);
      return {};
    };
    EXPECT_TRUE(network->load_param(index, p.dtype.value_or(dtype), rows, pool()).ok());
  }
  return {std::move(*spec), std::move(*network)};
}

// The outputs of two passes for one input; feedback links affect the second.
Result<std::vector<float>> run(const Network& network, const Shape& input) {
  ThreadPool alone(1);
  LOOM_ASSIGN(Session session,
              Session::create(network, cpu_ops(best_isa()), alone, input.after(2), {}));
  const int64_t vocab = network.vocab();
  std::vector<float> x;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < input.after(2).count(); ++i) {
    x.push_back(static_cast<float>(i % 7 - 3) / 4);
    if (vocab > 0) ids.push_back(static_cast<int32_t>(i % vocab));
  }
  Tensor t;
  t.dtype = vocab > 0 ? DType::i32 : DType::f32;
  t.shape = input.after(2);
  t.row_stride = t.shape.last();
  t.data =
      vocab > 0 ? reinterpret_cast<std::byte*>(ids.data()) : reinterpret_cast<std::byte*>(x.data());
  std::vector<float> out;
  for (int pass = 0; pass < 2; ++pass) {
    session.rewind(0);
    LOOM_ASSIGN(const Tensor y, session.forward(t, 0, network.cells().size()));
    for (int64_t row = 0; row < y.rows(); ++row)
      out.insert(out.end(), y.f32_row(row), y.f32_row(row) + y.cols());
  }
  return out;
}

void expect_same_outputs(const WrittenFile& made, const Network& mapped) {
  const auto mine = run(made.network, made.spec.input);
  const auto its = run(mapped, made.spec.input);
  ASSERT_TRUE(mine.ok()) << mine.error().str();
  ASSERT_TRUE(its.ok()) << its.error().str();
  ASSERT_EQ(mine->size(), its->size());
  EXPECT_EQ(std::memcmp(mine->data(), its->data(), mine->size() * 4), 0);
  EXPECT_TRUE(std::any_of(mine->begin(), mine->end(), [](float v) { return v != 0; }));
}

void expect_round_trip(const std::string& text, DType dtype) {
  const TemporaryFolder folder;
  const WrittenFile made = make(text, dtype);
  const Status saved = save_network(folder.path("a"), made.spec, made.network);
  ASSERT_TRUE(saved.ok()) << saved.error().str();
  const auto file = open_entity(folder.path("a"));
  ASSERT_TRUE(file.ok()) << file.error().str();
  Result<MappedNetwork> mapped = map_network(*file, 2);
  ASSERT_TRUE(mapped.ok()) << mapped.error().str();
  expect_same_outputs(made, mapped->network);
  const std::string bytes = *read_file(folder.path("a"));
  // Saved from the map, and packed again one parameter at a time.
  ASSERT_TRUE(save_network(folder.path("b"), mapped->spec, mapped->network).ok());
  EXPECT_TRUE(*read_file(folder.path("b")) == bytes);
  const auto source = open_network_entity(*file);
  ASSERT_TRUE(source.ok()) << source.error().str();
  const Status again = save_network(folder.path("c"), **source, {}, pool());
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_TRUE(*read_file(folder.path("c")) == bytes) << dtype_name(dtype);
}

TEST(EntityNetwork, GivesTheBitsThatWereSavedAndTheSameFileAgain) {
  for (const char* text : kNetworks) {
    SCOPED_TRACE(text);
    expect_round_trip(text, DType::f32);
  }
}

TEST(EntityNetwork, HoldsEveryKindOfLayer) {
  for (const KindNetwork& kind : kind_networks()) {
    SCOPED_TRACE(kind.kind);
    const std::string text = write_network(kind.network);
    expect_round_trip(text, DType::f32);
    expect_round_trip(text, DType::q4_0);
  }
}

class EntityNetworkOfType : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryType, EntityNetworkOfType, ::testing::ValuesIn(test::all_dtypes()),
                         test::dtype_test_name);

TEST_P(EntityNetworkOfType, GivesTheBitsThatWereSavedAndTheSameFileAgain) {
  expect_round_trip(kNetworks[2], GetParam());
}

TEST(EntityNetwork, KeepsTheFileMappedAndCopiesNothing) {
  const TemporaryFolder folder;
  const WrittenFile made = make(kNetworks[0]);
  ASSERT_TRUE(save_network(folder.path("a"), made.spec, made.network).ok());
  Result<MappedNetwork> mapped = [&] {
    const auto file = open_entity(folder.path("a"));
    EXPECT_TRUE(file.ok());
    Result<MappedNetwork> network = map_network(*file, 2);
    const Entity& entity = **file;
    for (const Param& p : network->network.params()) {
      const auto blob = entity.bytes(static_cast<size_t>(entity.find(p.path)));
      EXPECT_EQ(p.memory.size(), 0);
      EXPECT_EQ(p.tensor.data, blob.data()) << p.path;
      EXPECT_EQ(p.bytes(), static_cast<int64_t>(blob.size()));
    }
    return network;
  }();
  // The file is replaced by another: the map is unchanged.
  ASSERT_TRUE(write_file_atomic(folder.path("a"), std::as_bytes(std::span("other"))).ok());
  expect_same_outputs(made, mapped->network);
}

// The blobs of a network, to be modified before writing.
struct Parts {
  WrittenFile made;
  JsonValue header = JsonValue::object();
  std::vector<EntityOutput> blobs;
};

Parts parts() {
  Parts p{make(R"({"loom":1,"input":[3],"layers":[{"type":"Dense","in":3,"out":2}]})"), {}, {}};
  add_network(p.made.spec, p.made.network, p.header, p.blobs);
  return p;
}

// `blob`: the one whose offset the Error names; -1 means none.
void expect_refused(const Parts& p, const std::string& error, int blob = -1) {
  const TemporaryFolder folder;
  const Status written = write_entity(folder.path("a"), p.header, p.blobs);
  ASSERT_TRUE(written.ok()) << written.error().str();
  const auto file = open_entity(folder.path("a"));
  Status refused = file.ok() ? Status() : Status(file.error());
  if (file.ok()) {
    const auto network = map_network(*file, 1);
    if (!network.ok()) refused = network.error();
  }
  ASSERT_FALSE(refused.ok()) << error;
  EXPECT_EQ(refused.error().code, Code::bad_file);
  EXPECT_EQ(refused.error().message, error);
  EXPECT_EQ(refused.error().where, folder.path("a"));
  if (blob < 0) return;
  const auto raw = Entity::open(folder.path("a"));
  const EntityBlob& meant = (*raw)->blobs()[static_cast<size_t>(blob)];
  EXPECT_EQ(refused.error().offset, static_cast<int64_t>(meant.offset));
}

constexpr const char* kWeight = "(0, 0, 0, 0)/weight";
constexpr const char* kBias = "(0, 0, 0, 0)/bias";

EntityOutput zeros(std::string path, BlobLayout layout, DType dtype, const Shape& shape) {
  static const std::string none(4096, '\0');
  const int64_t bytes = layout == BlobLayout::r16 ? r16_geometry(dtype, shape[0], shape[1]).bytes()
                                                  : plain_bytes(dtype, shape);
  EntityOutput out{std::move(path), layout, dtype, shape, {}};
  out.data = [bytes]() -> Result<std::span<const std::byte>> {
    return std::as_bytes(std::span(none)).first(static_cast<size_t>(bytes));
  };
  return out;
}

TEST(EntityNetwork, RefusesParametersThatDoNotFit) {
  const auto weight = [](BlobLayout layout, DType dtype, const Shape& shape) {
    Parts p = parts();
    p.blobs[0] = zeros(kWeight, layout, dtype, shape);
    return p;
  };
  const std::string at = cat("parameter ", kWeight, " is ");
  const std::string wants = ", the network wants [2, 3] in r16";
  expect_refused(weight(BlobLayout::r16, DType::f32, Shape{3, 2}), at + "[3, 2] in r16" + wants, 0);
  expect_refused(weight(BlobLayout::r16, DType::i8, Shape{2, 4}), at + "[2, 4] in r16" + wants, 0);
  expect_refused(weight(BlobLayout::plain, DType::f32, Shape{2, 3}),
                 at + "[2, 3] in float32" + wants, 0);
  expect_refused(weight(BlobLayout::plain, DType::f32, Shape{6}), at + "[6] in float32" + wants, 0);
  Parts text = parts();
  text.blobs[0] = text_output(kWeight, "abc");
  expect_refused(text, cat(kWeight, " is a text"), 0);
  Parts bias = parts();
  bias.blobs[1] = zeros(kBias, BlobLayout::plain, DType::f64, Shape{2});
  expect_refused(
      bias, cat("parameter ", kBias, " is [2] in float64, the network wants [2] in float32"), 1);
}

TEST(EntityNetwork, RefusesParametersThatAreAbsentOrTooMany) {
  Parts absent = parts();
  absent.blobs.pop_back();
  expect_refused(absent, cat("has no blob ", kBias));
  Parts renamed = parts();
  renamed.blobs[0].path = "(0, 0, 0, 1)/weight";
  expect_refused(renamed, cat("has no blob ", kWeight));
  Parts more = parts();
  more.blobs.push_back(zeros("(0, 0, 0, 1)/weight", BlobLayout::plain, DType::f32, Shape{1}));
  expect_refused(more, "has 3 parameters, its network 2");
}

TEST(EntityNetwork, RefusesSectionsAndBlobsNobodyKnows) {
  Parts section = parts();
  section.header.add("future", JsonValue::integer(1));
  expect_refused(section, "unknown section 'future'; was it written by a newer release?");
  Parts blob = parts();
  blob.blobs.push_back(zeros("weights", BlobLayout::plain, DType::f32, Shape{1}));
  expect_refused(blob, "unknown blob 'weights'", 2);
  Parts none = parts();
  none.header = JsonValue::object();
  expect_refused(none, "has no section 'network'");
  Parts bad = parts();
  bad.header = JsonValue::object();
  bad.header.add("network", JsonValue::integer(1));
  expect_refused(bad, "expected an object that describes a network, found 1");
  // The offset is that in the file: {"entity":2,"network": has 22 bytes.
  const TemporaryFolder folder;
  ASSERT_TRUE(write_entity(folder.path("a"), bad.header, {}).ok());
  EXPECT_EQ(entity_spec(**Entity::open(folder.path("a"))).error().offset, 64 + 22);
}

// kNetworks[0] as a file with one bit of the blob `path` flipped, mapped.
struct Damaged {
  explicit Damaged(const std::string& path, bool damage = true)
      : made(make(kNetworks[0])), memory(bytes(path, damage)) {
    file = std::shared_ptr<const Entity>(std::move(*Entity::parse(memory.bytes(), "f")));
    mapped = std::make_unique<MappedNetwork>(std::move(*map_network(file, 2)));
  }
  std::string bytes(const std::string& path, bool damage) const {
    const TemporaryFolder folder;
    EXPECT_TRUE(save_network(folder.path("a"), made.spec, made.network).ok());
    std::string all = *read_file(folder.path("a"));
    const auto read = Entity::open(folder.path("a"));
    const EntityBlob& blob = (*read)->blobs()[static_cast<size_t>((*read)->find(path))];
    const size_t at = blob.offset + blob.length / 2;
    if (damage) all[at] = static_cast<char>(all[at] ^ 4);
    return all;
  }
  WrittenFile made;
  AlignedBytes memory;
  std::shared_ptr<const Entity> file;
  std::unique_ptr<MappedNetwork> mapped;
};

TEST(DamagedEntityNetwork, IsFoundWhenASessionFirstUsesTheParameter) {
  const Damaged damaged("(0, 0, 2, 0)/gamma");
  const Network& network = damaged.mapped->network;
  Result<Session> session = Session::create(network, cpu_ops(best_isa()), pool(), Shape{2, 6}, {});
  ASSERT_TRUE(session.ok()) << "only a pass reads parameters";
  std::vector<float> x(12, 0.5f);
  Tensor t = f32_matrix(x.data(), 2, 6);
  EXPECT_TRUE(session->forward(t, 0, 2).ok()) << "cells before it are whole";
  for (int again = 0; again < 2; ++again) {
    const auto refused = session->forward(t, 0, 4);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::bad_file);
    EXPECT_THAT(refused.error().str(),
                ::testing::MatchesRegex("f: at byte [0-9]+: \\(0, 0, 2, 0\\)/gamma does not match "
                                        "its hash: the file is damaged"));
  }
}

TEST(DamagedEntityNetwork, IsFoundInParametersThatCellsShare) {
  const Damaged damaged("(0, 0, 0, 0)/weight");
  EXPECT_FALSE(run(damaged.mapped->network, Shape{6}).ok());
}

TEST(DamagedEntityNetwork, IsNotGivenHashesThatFitBySavingIt) {
  const Damaged damaged("(0, 0, 3, 0)/bias");
  const TemporaryFolder folder;
  for (const auto& save : {std::function<Status()>([&] {
                             return save_network(folder.path("a"), damaged.mapped->spec,
                                                 damaged.mapped->network);
                           }),
                           std::function<Status()>([&]() -> Status {
                             LOOM_ASSIGN(const auto source, open_network_entity(damaged.file));
                             return save_network(folder.path("a"), *source, {}, pool());
                           })}) {
    const Status saved = save();
    ASSERT_FALSE(saved.ok());
    EXPECT_THAT(saved.error().message, ::testing::HasSubstr("does not match its hash"));
    EXPECT_EQ(folder.file_count(), 0u);
  }
}

TEST(EntityNetwork, IsSharedByThreads) {
  for (const bool damage : {false, true}) {
    const Damaged file("(0, 0, 3, 0)/weight", damage);
    const auto expected = run(file.made.network, Shape{6});
    ASSERT_TRUE(expected.ok());
    std::vector<Result<std::vector<float>>> got(4, invalid("not run"));
    std::vector<std::thread> threads;
    for (auto& result : got)
      threads.emplace_back([&] { result = run(file.mapped->network, Shape{6}); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : got) {
      EXPECT_EQ(result.ok(), !damage);
      EXPECT_EQ(result.ok() ? *result : *expected, *expected);
    }
  }
}

}  // namespace
}  // namespace loom::core
