// Signatures of operators: how their texts are read, and that every row has a valid one.
#include <gtest/gtest.h>

#include <set>

#include "base/text.hpp"
#include "onnx/interpreter/body.hpp"

namespace loom::core::evaluate {
namespace {

std::vector<Operator> all_rows() {
  std::vector<Operator> rows(declared_operators().begin(), declared_operators().end());
  for (const auto families : {common_families(), operator_families()}) {
    for (const auto family : families) rows.insert(rows.end(), family.begin(), family.end());
  }
  return rows;
}

TEST(Signatures, AreReadByOpset) {
  constexpr std::string_view kText = "A shape|5 Al>A|14 A?l>A3 allowzero:g axis:i!|20 A";
  struct Row {
    int64_t opset;
    std::string says;  // letters, smallest number of inputs, outputs; empty if importers refuse it
  };
  const std::vector<Row> rows = {{1, ""},         {4, ""},         {5, "Al 2 1"}, {13, "Al 2 1"},
                                 {14, "A?l 1 3"}, {19, "A?l 1 3"}, {20, ""}};
  for (const Row& row : rows) {
    const std::optional<Version> v = version_at(kText, row.opset);
    const std::string says = v ? cat(v->letters, " ", v->min_inputs, " ", v->outputs) : "";
    EXPECT_EQ(says, row.says) << row.opset;
  }
  EXPECT_EQ(version_at(kText, 14)->letter(1), 'l');
  EXPECT_EQ(input_count(kText).min, 1);
  EXPECT_EQ(input_count(kText).max, 2);
}

TEST(Signatures, CountInputsThatRepeatOrAreNone) {
  struct Row {
    std::string_view text;
    int min, max;
  };
  for (const Row& row : {Row{"N+>N", 1, -1}, Row{"?a+ body", 0, -1}, Row{". dtype", 0, 0},
                         Row{".>c value:t", 0, 0}, Row{"A>A+", 1, 1}, Row{"F>F|6 F?FF>F", 1, 3}}) {
    EXPECT_EQ(input_count(row.text).min, row.min) << row.text;
    EXPECT_EQ(input_count(row.text).max, row.max) << row.text;
  }
  EXPECT_EQ(version_at("bA+>A", 1)->letter(7), 'A');
}

TEST(Signatures, OfEveryRowAreValid) {
  constexpr std::string_view kLetters = "aAbBfFgGilImMnNPRSUVW", kKinds = "fgistFIS";
  const auto check = [&](const Operator& row, const Version& v, int64_t before) {
    const bool ordered = v.since > before;
    std::string letters(v.letters);
    std::erase(letters, '?');
    const bool typed = letters.find_first_not_of(kLetters) == std::string::npos;
    const bool gives = v.result == 0 || v.result == 'b' || v.result == 'l' || v.result == 'c' ||
                       letters.find(v.result) != std::string::npos;
    EXPECT_TRUE(ordered && typed && gives && v.outputs > 0) << row.domain << ":" << row.name;
    std::set<std::string_view> names;
    std::string_view rest = v.attributes;
    while (const std::optional<AttributeRule> rule = next_attribute(rest)) {
      const bool kind = rule->kind == 0 || kKinds.find(rule->kind) != kKinds.npos;
      EXPECT_TRUE(kind && !rule->name.empty() && names.insert(rule->name).second)
          << row.name << " " << rule->name;
    }
  };
  for (const Operator& row : all_rows()) {
    const bool declared = find_described(row.name) != nullptr && row.domain.empty();
    EXPECT_TRUE(declared || !row.signature.empty()) << row.name;
    int64_t before = 0;
    std::string_view rest = row.signature;
    while (const std::optional<Version> v = next_version(rest)) {
      check(row, *v, before);
      before = v->since;
    }
  }
}

TEST(Signatures, OfDeclaredOperatorsAreThoseOfTheInterpreter) {
  for (const Operator& declared : declared_operators()) {
    EXPECT_EQ(declared.run, nullptr) << declared.name;
    const Operator* row = find_operator("", declared.name);
    ASSERT_NE(row, nullptr) << declared.name;
    EXPECT_NE(row->run, nullptr) << declared.name;
    EXPECT_TRUE(row->signature.empty() && row->layer.empty()) << declared.name;
    EXPECT_EQ(row->inputs().min, input_count(declared.signature).min) << declared.name;
  }
}

TEST(Signatures, NameLayersByKindAndFunction) {
  struct Row {
    std::string_view op, kind, function;
  };
  for (const Row& row :
       {Row{"ReduceLogSum", "reduce", "log_sum"}, Row{"Flatten", "view", ""},
        Row{"MaxPool", "pool", "max"}, Row{"Gemm", "dense", ""},
        Row{"LogSoftmax", "softmax", "log"}, Row{"Atan", "", ""}, Row{"None", "", ""}}) {
    EXPECT_EQ(layer_of(row.op).kind, row.kind) << row.op;
    EXPECT_EQ(layer_of(row.op).function, row.function) << row.op;
  }
}

}  // namespace
}  // namespace loom::core::evaluate
