// make_layer: defaults, unknown names, ranges; every refusal lists the valid names.
#include <gtest/gtest.h>

#include <set>

#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

TEST(MakeLayer, FillsDefaultsAndKeepsWhatWasGiven) {
  const Result<LayerConfig> made = make_layer(LayerKind::dense, {{"out", 7}});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->integer(0), 1);
  EXPECT_EQ(made->integer(1), 7);
  EXPECT_TRUE(made->flag(2));
  EXPECT_EQ(made->text(3), "linear");
}

TEST(MakeLayer, RefusesAnUnknownFieldAndListsTheKnownOnes) {
  const Result<LayerConfig> made = make_layer(LayerKind::dense, {{"output", 7}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message,
            "Dense has no field 'output'; it has in, out, bias, activation, soft_cap, scale");
}

TEST(MakeLayer, RefusesAValueOutOfRange) {
  const Result<LayerConfig> made = make_layer(LayerKind::dense, {{"in", 0}});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("Dense: in is 0"), std::string::npos) << made.error().message;
}

TEST(MakeLayer, RefusesChildrenOfALayerThatIsNoContainer) {
  std::vector<LayerConfig> children(1, *make_layer(LayerKind::sequential, {}));
  const Result<LayerConfig> made = make_layer(LayerKind::dense, {}, std::move(children));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "Dense is not a container, but 1 children were given");
}

TEST(LayerTable, HasUniqueKindsAndNamesAndCompleteDefinitions) {
  std::set<std::string_view> names;
  std::set<int> kinds;
  for (const LayerDef* def : layer_table()) {
    EXPECT_TRUE(names.insert(def->name).second) << def->name;
    EXPECT_TRUE(kinds.insert(static_cast<int>(def->kind)).second) << def->name;
    EXPECT_TRUE(def->infer.defined() && def->forward.defined()) << def->name;
    for (const FieldDesc& field : def->fields)
      EXPECT_FALSE(field.doc.empty()) << def->name << "." << field.name;
  }
}

}  // namespace
}  // namespace loom::core
