// The state of a session in a file: a restored session continues with the bits of an uninterrupted
// one, and a file that does not fit, or is damaged anywhere, changes nothing.
#include "llm/stories.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kText = "Once upon a time, there was a little girl named Lily.";

LlmSessionOptions in_cache(DType cache, int64_t context = 64) {
  LlmSessionOptions options;
  options.context = context;
  options.cache = cache;
  return options;
}

std::string saved(const LlmSession& session) {
  std::string bytes;
  const Status status = session.save_state(FileRef::into("state", bytes));
  EXPECT_TRUE(status.ok()) << status.error().str();
  return bytes;
}

Status loaded(LlmSession& session, const std::string& bytes) {
  return session.load_state(FileRef::of_bytes("state", std::as_bytes(std::span(bytes))));
}

class StateIn : public testing::TestWithParam<DType> {};

TEST_P(StateIn, ASessionGoesOnWithTheBitsOfOneThatNeverStopped) {
  const LanguageModel& model = test::stories();
  const std::vector<TokenId> prompt = test::encode(model, kText);
  GenerateOptions options;
  options.max_tokens = 20;
  LlmSession whole = test::session(model, in_cache(GetParam()));
  ASSERT_TRUE(whole.feed(prompt).ok());
  const std::string file = saved(whole);
  const Result<Generation> expected = generate(whole, model, {}, options);
  ASSERT_TRUE(expected.ok());
  // In a session of another context and pieces, which had read something else.
  LlmSession other = test::session(model, in_cache(GetParam(), 48));
  ASSERT_TRUE(other.feed(test::encode(model, "Tom had a red ball and a dog")).ok());
  const Status status = loaded(other, file);
  ASSERT_TRUE(status.ok()) << status.error().str();
  EXPECT_EQ(other.position(), static_cast<int64_t>(prompt.size()));
  EXPECT_EQ(saved(other), file);
  const Result<Generation> got = generate(other, model, {}, options);
  ASSERT_TRUE(got.ok()) << got.error().str();
  EXPECT_EQ(got->token_ids, expected->token_ids);
}

TEST_P(StateIn, TokensThatWereForgottenLeaveNothingInIt) {
  const LanguageModel& model = test::stories();
  const std::vector<TokenId> prompt = test::encode(model, kText);
  LlmSession fresh = test::session(model, in_cache(GetParam()));
  ASSERT_TRUE(fresh.feed(prompt).ok());
  LlmSession used = test::session(model, in_cache(GetParam()));
  ASSERT_TRUE(used.feed(prompt).ok());
  ASSERT_TRUE(used.feed(prompt).ok());
  used.rewind(static_cast<int64_t>(prompt.size()) - 1);
  ASSERT_TRUE(used.feed(std::span(prompt).last(1)).ok());
  EXPECT_EQ(saved(used), saved(fresh));
}

INSTANTIATE_TEST_SUITE_P(Types, StateIn,
                         testing::Values(DType::f32, DType::f16, DType::bf16, DType::q8_0),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST(States, DamageAnywhereIsFoundAndChangesNothing) {
  const LanguageModel& model = test::stories();
  LlmSession session = test::session(model, in_cache(DType::q8_0));
  ASSERT_TRUE(session.feed(test::encode(model, "Tom")).ok());
  const std::string file = saved(session);
  LlmSession other = test::session(model, in_cache(DType::q8_0));
  ASSERT_TRUE(other.feed(test::encode(model, "Lily and her dog")).ok());
  const std::string own = saved(other);
  const size_t step = file.size() / 97 + 1;
  for (size_t at = 0; at < file.size(); at += at < 80 ? 1 : step) {
    std::string flipped = file;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_FALSE(loaded(other, flipped).ok()) << "byte " << at;
    EXPECT_FALSE(loaded(other, file.substr(0, at)).ok()) << "cut at " << at;
  }
  EXPECT_FALSE(loaded(other, file + "x").ok());
  EXPECT_EQ(saved(other), own);
  EXPECT_TRUE(loaded(other, file).ok());
}

TEST(States, OfOthersAreRefusedByName) {
  const LanguageModel& model = test::stories();
  LlmSession session = test::session(model, in_cache(DType::f32));
  ASSERT_TRUE(session.feed(test::encode(model, kText)).ok());
  const std::string file = saved(session);
  const auto refused = [&](const LanguageModel& by, const LlmSessionOptions& options) {
    LlmSession other = test::session(by, options);
    const Status status = loaded(other, file);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(other.position(), 0);
    return status.ok() ? std::string() : status.error().message;
  };
  const std::string other =
      "this is the state of another model, or of other types of weights, "
      "activations or keys and values";
  EXPECT_EQ(refused(model, in_cache(DType::f16)), other);
  LlmSessionOptions exact = in_cache(DType::f32);
  exact.activations = ActivationMode::f32;
  EXPECT_EQ(refused(model, exact), other);
  const auto packed = load_language_model(test::kStories, {DType::q4_0, {}}, test::pool());
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(refused(*packed, in_cache(DType::f32)), other);
  EXPECT_EQ(refused(model, in_cache(DType::f32, 8)).substr(0, 20), "the context is full:");
  LlmSession empty = test::session(model, in_cache(DType::f32));
  EXPECT_TRUE(loaded(empty, saved(test::session(model, in_cache(DType::f32)))).ok());
  EXPECT_EQ(empty.position(), 0);
}

// The values of an adapter do not say how much of it is used.
TEST(States, OfAnotherWeightOfAnAdapterAreRefused) {
  const auto with = [&](double scale) {
    Result<LanguageModel> model = load_language_model(test::kStories, {}, test::pool());
    EXPECT_TRUE(model.ok());
    const int64_t width = model->config().hidden_size,
                  rows = model->config().num_heads * model->config().head_dim;
    WeightAdapter q{{1, 0, 0, 0}, "1/q", 1, scale, {}, {}};
    q.a.assign(static_cast<size_t>(width), 0.25f);
    q.b.assign(static_cast<size_t>(rows), 0.5f);
    const Status added = model->add_adapters({{"style", "a folder", {q}}}, test::pool());
    EXPECT_TRUE(added.ok()) << added.error().str();
    return std::move(*model);
  };
  const LanguageModel whole = with(1.0), half = with(0.5);
  LlmSession session = test::session(whole, in_cache(DType::f32));
  ASSERT_TRUE(session.feed(test::encode(whole, kText)).ok());
  LlmSession same = test::session(whole, in_cache(DType::f32));
  EXPECT_TRUE(loaded(same, saved(session)).ok());
  LlmSession other = test::session(half, in_cache(DType::f32));
  const Status status = loaded(other, saved(session));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message.rfind("this is the state of another model", 0), 0u);
}

}  // namespace
}  // namespace loom::core
