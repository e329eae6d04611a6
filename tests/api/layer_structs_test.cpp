// Every struct of a layer as a Layer: every member of every kind, set to a non-default value, is
// the field of that name and no other. The core's table is the reference for defaults.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <type_traits>

#include "layers/blocks/blocks.hpp"
#include "loom/loom.hpp"

namespace loom::test {
namespace {

using Value = decltype(LayerField::value);

// The texts of an enum, in the order of its numbers.
template <class E>
std::vector<std::string> words_of();
#define LAYER(Struct, type)
#define MEMBER(Struct, member, field)
#define WORDS(Enum, ...)                      \
  template <>                                 \
  std::vector<std::string> words_of<Enum>() { \
    return {__VA_ARGS__};                     \
  }
#include "every_layer.inl"
#undef LAYER
#undef MEMBER
#undef WORDS

std::map<std::string, Value> fields_of(const Layer& layer) {
  std::map<std::string, Value> fields;
  for (const LayerField& f : layer.fields) {
    EXPECT_TRUE(fields.emplace(f.name, f.value).second) << layer.type << "." << f.name << " twice";
  }
  return fields;
}

// Non-default values of a member, and their form in a Layer.
std::vector<std::pair<bool, Value>> others(bool usual) {
  return {{!usual, Value(!usual)}};
}
std::vector<std::pair<int64_t, Value>> others(int64_t usual) {
  return {{usual + 3, Value(usual + 3)}};
}
std::vector<std::pair<double, Value>> others(double usual) {
  return {{usual + 0.25, Value(usual + 0.25)}};
}
std::vector<std::pair<std::string, Value>> others(const std::string& usual) {
  return {{usual + "x", Value(usual + "x")}};
}
std::vector<std::pair<Axes, Value>> others(const Axes& usual) {
  Axes longer = usual;
  longer.push_back(7);
  return {{longer, Value(longer)}};
}
template <class E, std::enable_if_t<std::is_enum_v<E>, int> = 0>
std::vector<std::pair<E, Value>> others(E usual) {
  std::vector<std::pair<E, Value>> all;
  const std::vector<std::string> words = words_of<E>();
  for (size_t i = 0; i < words.size(); ++i) {
    if (static_cast<E>(i) != usual) all.emplace_back(static_cast<E>(i), Value(words[i]));
  }
  all.emplace_back(static_cast<E>(words.size()), Value(std::string("unknown")));
  return all;
}

template <class S, class M>
void check_member(M S::*member, const std::string& field) {
  const S usual{};
  const auto before = fields_of(usual);
  for (const auto& [value, message] : others(usual.*member)) {
    S changed;
    changed.*member = value;
    const Layer layer = changed;
    SCOPED_TRACE(layer.type + "." + field);
    auto after = fields_of(layer);
    ASSERT_EQ(after.count(field), 1u);
    if (layer.type == "KMeans" && field == "mode") {  // a bool that is one of two texts
      EXPECT_EQ(after[field], Value(std::string("features")));
    } else {
      EXPECT_EQ(after[field], message);
    }
    after[field] = before.at(field);
    // Derived from others if 0.
    if (layer.type == "MultiHeadAttention" && (field == "heads" || field == "width")) continue;
    EXPECT_EQ(after, before);
  }
}

TEST(LayerStructs, EveryMemberIsAFieldOfItsName) {
#define LAYER(Struct, type)
#define MEMBER(Struct, member, field) check_member(&Struct::member, field);
#define WORDS(Enum, ...)
#include "every_layer.inl"
#undef LAYER
#undef MEMBER
#undef WORDS
}

// The core's default, as in a Layer.
Value default_of(const core::FieldDesc& desc) {
  const double number = desc.default_number;
  switch (desc.type) {
    case core::FieldType::boolean: return number != 0;
    case core::FieldType::integer: return static_cast<int64_t>(number);
    case core::FieldType::real: return number;
    case core::FieldType::text: return std::string(desc.default_text);
    case core::FieldType::list: break;
  }
  return number < desc.min ? Axes{} : Axes{static_cast<int64_t>(number)};
}

std::string check_defaults(const Layer& layer, const std::string& type) {
  EXPECT_EQ(layer.type, type);
  const core::LayerDef* def = core::find_layer(type);
  EXPECT_NE(def, nullptr) << type;
  if (def == nullptr) return type;
  const auto fields = fields_of(layer);
  EXPECT_EQ(fields.size(), def->fields.size()) << type;
  for (const core::FieldDesc& desc : def->fields) {
    const auto found = fields.find(std::string(desc.name));
    EXPECT_NE(found, fields.end()) << type << "." << desc.name;
    if (found == fields.end() || type == "View") continue;  // {0, -1}: the default is not a shape
    EXPECT_EQ(found->second, default_of(desc)) << type << "." << desc.name;
  }
  return type;
}

TEST(LayerStructs, EveryKindHasAStructWithTheFieldsAndDefaultsOfCore) {
  std::set<std::string> types = {"Graph"};  // which Graph builds
#define LAYER(Struct, type) types.insert(check_defaults(Struct{}, type));
#define MEMBER(Struct, member, field)
#define WORDS(Enum, ...)
#include "every_layer.inl"
#undef LAYER
#undef MEMBER
#undef WORDS
  const std::vector<std::string> all = layer_types();
  EXPECT_EQ(types, std::set<std::string>(all.begin(), all.end()));
}

TEST(LayerStructs, WordsOfActivationsAreThoseOfCore) {
  const std::vector<std::string> words = words_of<Activation>();
  for (size_t i = 0; i < words.size(); ++i)
    EXPECT_EQ(activation_name(static_cast<Activation>(i)), words[i]);
  EXPECT_EQ(activation_name(static_cast<Activation>(words.size())), "unknown");
}

TEST(LayerStructs, FurtherFieldsWinOverMembers) {
  const Layer layer = Softmax{.temperature = 2, .more = {{"temperature", 3.0}}};
  EXPECT_EQ(layer.fields.back().value, Value(3.0));
  EXPECT_EQ(layer.fields.back().name, "temperature");
}

TEST(LayerStructs, HeadsOfAttentionFollowFromOthersWhereTheyAreZero) {
  auto fields = fields_of(MultiHeadAttention{.width = 12, .heads = 3});
  EXPECT_EQ(fields["kv_heads"], Value(int64_t{3}));
  EXPECT_EQ(fields["head_dim"], Value(int64_t{4}));
  fields = fields_of(MultiHeadAttention{.width = 12, .heads = 0, .kv_heads = 2});
  EXPECT_EQ(fields["kv_heads"], Value(int64_t{2}));
  EXPECT_EQ(fields["head_dim"], Value(int64_t{0}));
}

}  // namespace
}  // namespace loom::test
