// Language models in .entity files: the logits of the saved model, in every number type. Texts are
// kept; another type is packed again; weights are only in the map.
#include "convert/language_model.hpp"
#include "formats/entity/model.hpp"

#include <gmock/gmock.h>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "dtype/samples.hpp"
#include "formats/config/config.hpp"
#include "formats/config/text.hpp"
#include "grid/init.hpp"
#include "io/entity_testing.hpp"
#include "llm/decoder.hpp"
#include "llm/sessions/llm_session.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;

ThreadPool& pool() {
  static ThreadPool threads(2);
  return threads;
}

std::unique_ptr<ModelSource> tiny_source(uint64_t seed = 3) {
  Result<std::unique_ptr<ModelSource>> source = random_source(*shape_config("tiny"), seed, pool());
  EXPECT_TRUE(source.ok()) << source.error().str();
  return std::move(*source);
}

SaveModelOptions packed(DType dtype) {
  SaveModelOptions options;
  options.dtype = dtype;
  options.policy.dtype = [dtype](const Param& param, DType) {
    return decoder_dtype(param, *shape_config("tiny"), dtype);
  };
  return options;
}

Result<std::vector<float>> logits(const LanguageModel& model) {
  LlmSessionOptions options;
  options.head_rows = 8;
  LOOM_ASSIGN(LlmSession session, LlmSession::create(model, cpu_ops(best_isa()), pool(), options));
  std::vector<TokenId> ids;
  for (int i = 0; i < 20; ++i) ids.push_back((i * 71 + 5) % 256);
  std::vector<float> all;
  LOOM_TRY(session.feed_all(ids, [&](int64_t, std::span<const float> row) -> Status {
    all.insert(all.end(), row.begin(), row.end());
    return {};
  }));
  return all;
}

void expect_same_logits(const LanguageModel& a, const LanguageModel& b) {
  const auto mine = logits(a), its = logits(b);
  ASSERT_TRUE(mine.ok()) << mine.error().str();
  ASSERT_TRUE(its.ok()) << its.error().str();
  EXPECT_EQ(mine->size(), 20u * 256);
  EXPECT_TRUE(*mine == *its);
  EXPECT_NE(mine->front(), mine->back());
}

class EntityModelOfType : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryType, EntityModelOfType, ::testing::ValuesIn(test::all_dtypes()),
                         test::dtype_test_name);

TEST_P(EntityModelOfType, GivesTheLogitsOfTheModelThatWasSaved) {
  const TemporaryFolder folder;
  const auto source = tiny_source();
  const auto loaded = LanguageModel::load(*source, {GetParam(), {}}, pool());
  ASSERT_TRUE(loaded.ok()) << loaded.error().str();
  const Status saved = save_model(folder.path("m"), *source, packed(GetParam()), pool());
  ASSERT_TRUE(saved.ok()) << saved.error().str();
  const auto mapped = load_language_model(folder.path("m"), {}, pool());
  ASSERT_TRUE(mapped.ok()) << mapped.error().str();
  EXPECT_EQ(mapped->dtype(), GetParam());
  expect_same_logits(*loaded, *mapped);
  // Every parameter is in the map.
  for (const Param& p : mapped->network().params()) {
    EXPECT_EQ(p.memory.size(), 0) << p.path;
    EXPECT_GT(p.bytes(), 0) << p.path;
  }
}

TEST(EntityModel, SavedAgainIsTheSameFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save_model(folder.path("a"), *tiny_source(), packed(DType::i4), pool()).ok());
  const auto source = open_model_source(folder.path("a"));
  ASSERT_TRUE(source.ok()) << source.error().str();
  ASSERT_TRUE(save_model(folder.path("b"), **source, {}, pool()).ok());
  EXPECT_TRUE(*read_file(folder.path("a")) == *read_file(folder.path("b")));
}

TEST(EntityModel, OfAnotherTypeIsPackedAnew) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save_model(folder.path("f32"), *tiny_source(), packed(DType::f32), pool()).ok());
  const auto direct = LanguageModel::load(*tiny_source(), {DType::q8_0, {}}, pool());
  const auto other = load_language_model(folder.path("f32"), {DType::q8_0, {}}, pool());
  ASSERT_TRUE(other.ok()) << other.error().str();
  EXPECT_EQ(other->dtype(), DType::q8_0);
  for (const Param& p : other->network().params()) EXPECT_GT(p.memory.size(), 0) << p.path;
  expect_same_logits(*direct, *other);
  // The same through a file.
  const auto source = open_model_source(folder.path("f32"));
  ASSERT_TRUE(source.ok());
  ASSERT_TRUE(save_model(folder.path("q8"), **source, packed(DType::q8_0), pool()).ok());
  const auto mapped = load_language_model(folder.path("q8"), {}, pool());
  ASSERT_TRUE(mapped.ok()) << mapped.error().str();
  expect_same_logits(*direct, *mapped);
}

TEST(EntityModel, KeepsItsTexts) {
  const TemporaryFolder folder;
  auto source = tiny_source();
  source->chat_template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}";
  source->bos = "<s>\xC3\xA9";
  source->eos = "</s>";
  ASSERT_TRUE(save_model(folder.path("m"), *source, {}, pool()).ok());
  const auto read = open_model_source(folder.path("m"));
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_EQ((*read)->config_json, config_text(*source));
  EXPECT_EQ((*read)->generation_json, source->generation_json);
  EXPECT_EQ((*read)->tokenizer_json, "");
  EXPECT_EQ((*read)->chat_template, source->chat_template);
  EXPECT_EQ((*read)->bos, source->bos);
  EXPECT_EQ((*read)->eos, source->eos);
  EXPECT_EQ((*read)->path, folder.path("m"));
}

TEST(EntityModel, OfTheStoriesSpeaksLikeTheFolder) {
  const TemporaryFolder folder;
  const std::string stories = loom_test::source_path("tests/data/stories");
  if (!is_directory(stories)) GTEST_SKIP() << "no folder tests/data/stories";
  const auto source = open_model_source(stories);
  ASSERT_TRUE(source.ok()) << source.error().str();
  ASSERT_TRUE(save_model(folder.path("m"), **source, {}, pool()).ok());
  const auto loaded = load_language_model(stories, {}, pool());
  const auto mapped = load_language_model(folder.path("m"), {}, pool());
  ASSERT_TRUE(loaded.ok() && mapped.ok());
  ASSERT_NE(mapped->tokenizer(), nullptr);
  EXPECT_EQ(*mapped->tokenizer()->encode("Once upon a time"),
            *loaded->tokenizer()->encode("Once upon a time"));
}

// The tiny model's parts, for files that do not fit.
Status save_changed(const std::string& path, const std::function<void(JsonValue&)>& change,
                    std::string_view drop) {
  LOOM_TRY(save_model(path + ".whole", *tiny_source(), {}, pool()));
  LOOM_ASSIGN(const auto file, Entity::open(path + ".whole"));
  JsonValue header = file->header();
  change(header);
  std::vector<EntityOutput> blobs;
  for (size_t i = 0; i < file->blobs().size(); ++i) {
    const EntityBlob& blob = file->blobs()[i];
    if (blob.path == drop) continue;
    blobs.push_back(
        {blob.path, blob.layout, blob.dtype, blob.shape,
         [&file, i]() -> Result<std::span<const std::byte>> { return file->bytes(i); }});
  }
  return write_entity(path, header, blobs);
}

JsonValue without(const JsonValue& object, std::string_view key) {
  JsonValue out = JsonValue::object();
  for (const auto& [name, value] : object.members()) {
    if (name != key) out.add(name, value);
  }
  return out;
}

TEST(EntityModel, RefusesWhatIsNoLanguageModel) {
  const struct {
    std::function<void(JsonValue&)> change;
    std::string_view drop;
    const char* error;
  } rows[] = {
      {[](JsonValue& h) { h = without(h, "language_model"); }, "",
       "is not a language model but a network; loom predict and loom eval read it"},
      {[](JsonValue& h) {
         h = without(h, "language_model");
         h.add("language_model", JsonValue::integer(1));
       },
       "", "language_model: dtype must be a text"},
      {[](JsonValue& h) { h = without(h, "network"); }, "", "has no section 'network'"},
      {[](JsonValue&) {}, "(0, 0, 0, 0)/weight", "has no blob (0, 0, 0, 0)/weight"},
      {[](JsonValue&) {}, "text/config.json", " (text/config.json): "},
  };
  for (const auto& row : rows) {
    const TemporaryFolder folder;
    const std::string path = folder.path("m");
    const Status saved = save_changed(path, row.change, row.drop);
    ASSERT_TRUE(saved.ok()) << saved.error().str();
    const auto model = load_language_model(path, {}, pool());
    ASSERT_FALSE(model.ok()) << row.error;
    EXPECT_THAT(model.error().str(), HasSubstr(row.error));
  }
}

TEST(EntityModel, DamageIsFoundByTheFirstPass) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save_model(folder.path("m"), *tiny_source(), {}, pool()).ok());
  std::string bytes = *read_file(folder.path("m"));
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  folder.write("d", bytes);
  const auto model = load_language_model(folder.path("d"), {}, pool());
  ASSERT_TRUE(model.ok()) << "opening is a map";
  EXPECT_THAT(logits(*model).error().str(), HasSubstr("does not match its hash"));
  EXPECT_THAT(load_language_model(folder.path("d"), {DType::i8, {}}, pool()).error().str(),
              HasSubstr("does not match its hash"));
}

TEST(EntityModel, IsToldByHowItBegins) {
  const TemporaryFolder folder;
  folder.write("e", std::string("ENTITY\0\0\7\0", 10));
  folder.write("s", "ENTITY");
  folder.write("g", "GGUF");
  EXPECT_EQ(model_file_kind(folder.path("e")), ModelFileKind::entity);
  EXPECT_EQ(model_file_kind(folder.path("g")), ModelFileKind::gguf);
  EXPECT_EQ(model_file_kind(folder.path("s")), ModelFileKind::other);
  EXPECT_EQ(model_file_kind(folder.path()), ModelFileKind::folder);
  EXPECT_EQ(model_file_kind(folder.path("none")), ModelFileKind::none);
}

// A file may describe any network. One that gives one row for many tokens would be read beyond its
// end.
TEST(EntityModel, ANetworkThatIsNoDecoderIsRefusedBeforeItsRowsAreRead) {
  const TemporaryFolder folder;
  GridSpec grid(2, 1, 1, 2);
  const auto put = [&](const Coord& at, LayerKind kind, const std::vector<Field>& fields) {
    ASSERT_TRUE(grid.put(at, {*make_layer(kind, fields), {}}).ok());
  };
  put({0, 0, 0, 0}, LayerKind::embedding, {{"vocab", 256}, {"width", 64}});
  put({0, 0, 0, 1}, LayerKind::rnn, {{"in", 64}, {"hidden", 64}, {"return_sequence", false}});
  put({1, 0, 0, 0}, LayerKind::dense, {{"in", 64}, {"out", 256}});
  const NetworkSpec spec{grid, Shape{1}};
  Result<Network> network = Network::finalize(grid, Shape{1, 1});
  ASSERT_TRUE(network.ok()) << network.error().str();
  ASSERT_TRUE(init_params(*network, DType::f32, 1, pool()).ok());
  JsonValue header = JsonValue::object();
  std::vector<EntityOutput> blobs;
  add_network(spec, *network, header, blobs);
  JsonValue model = JsonValue::object();
  for (const char* key : {"dtype", "bos", "eos"})
    model.add(key, JsonValue::string(key == std::string("dtype") ? "float32" : ""));
  header.add("language_model", std::move(model));
  blobs.push_back(text_output("text/config.json", hf_config_json(*shape_config("tiny"))));
  ASSERT_TRUE(write_entity(folder.path("m"), header, blobs).ok());
  const auto loaded = load_language_model(folder.path("m"), {}, pool());
  ASSERT_TRUE(loaded.ok()) << loaded.error().str();
  EXPECT_THAT(logits(*loaded).error().str(),
              HasSubstr("its network is not a decoder: 20 tokens give [1, 64]"));
}

}  // namespace
}  // namespace loom::core
