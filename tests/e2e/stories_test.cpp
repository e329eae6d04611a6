// The model in the tree against what `transformers` computed for it.
#include "e2e/reference.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

const std::string kStoryFolder = loom_test::source_path("tests/data/stories");

ModelOptions f32() {
  ModelOptions options;
  options.dtype = loom::DType::float32;
  return options;
}

TEST(Stories, TokenizeAsInTransformers) {
  test::expect_same_ids(test::load(kStoryFolder, f32()), test::read_reference(kStoryFolder));
}

TEST(Stories, LogitsAreThoseOfTransformers) {
  test::expect_close_logits(test::load(kStoryFolder, f32()), test::read_reference(kStoryFolder),
                            2e-3f);
}

TEST(Stories, GreedyContinuationsAreThoseOfTransformers) {
  test::expect_same_greedy(test::load(kStoryFolder, f32()), test::read_reference(kStoryFolder));
}

// bfloat16 weights are used as stored, so the numbers are those of float32.
TEST(Stories, WeightsAsStoredGiveTheBitsOfFloat32) {
  const Model stored = test::load(kStoryFolder, {}), wide = test::load(kStoryFolder, f32());
  EXPECT_EQ(stored.info().dtype, loom::DType::bfloat16);
  const auto ids = wide.tokenize("Lily and her dog went to the park.");
  Result<ModelSession> a = stored.session(), b = wide.session();
  ASSERT_TRUE(a->feed(*ids).ok() && b->feed(*ids).ok());
  EXPECT_TRUE(std::equal(a->logits().begin(), a->logits().end(), b->logits().begin()));
}

TEST(Stories, AreToldInAChatAndEnd) {
  const Model model = test::load(kStoryFolder, {});
  const std::vector<ChatTurn> turns = {{"user", "Tell me a story about a rabbit named Pip."}};
  const auto ids = model.tokenize_chat(turns);
  ASSERT_TRUE(ids.ok());
  Result<ModelSession> session = model.session();
  GenerateOptions options;
  options.max_tokens = 300;
  const Result<Generation> reply = session->generate(*ids, options);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->stop, StopReason::eos);
  EXPECT_NE(reply->text.find("Pip"), std::string::npos);
}

}  // namespace
}  // namespace loom::core
