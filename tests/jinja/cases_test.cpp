// Every filter, test, method, operator and tag against jinja2. tools/goldens/jinja_cases.py writes
// the cases. A template that jinja2 refuses must not render here either.
#include <gtest/gtest.h>

#include "jinja/chat_template.hpp"
#include "jinja/request.hpp"
#include "support/paths.hpp"
#include "text/golden.hpp"

namespace loom::core {
namespace {

// The text of a template, or nothing if it does not parse or does not render.
std::optional<std::string> rendered(const std::string& source, const ChatInputs& inputs) {
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, "t");
  if (!chat.ok()) return std::nullopt;
  Result<std::string> text = chat->render(inputs);
  return text.ok() ? std::optional(std::move(*text)) : std::nullopt;
}

JsonValue read_cases() {
  const std::string path = loom_test::source_path("tests/data/jinja/cases.json");
  Result<JsonValue> golden = parse_json(read_whole_file(path), "cases.json");
  EXPECT_TRUE(golden.ok()) << (golden.ok() ? "" : golden.error().str());
  return golden.ok() ? std::move(*golden) : JsonValue();
}

class JinjaCasesTest : public testing::TestWithParam<const char*> {};

TEST_P(JinjaCasesTest, RenderAsInJinja) {
  const JsonValue golden = read_cases();
  const ChatInputs inputs = request_inputs(member(golden, "inputs"));
  const auto& cases = member(member(golden, "groups"), GetParam()).elements();
  ASSERT_GT(cases.size(), 40u);
  for (const JsonValue& one : cases) {
    const std::string& source = one.elements()[0].text();
    const JsonValue& expected = one.elements()[1];
    const std::optional<std::string> text = rendered(source, inputs);
    if (expected.is_null())
      EXPECT_FALSE(text) << source << "\nrenders as " << *text;
    else
      EXPECT_EQ(text.value_or("(refused)"), expected.text()) << source;
  }
}

// A missing feature is refused with its name. It never renders as another text.
TEST(JinjaCases, AnUnsupportedFeatureIsRefused) {
  const JsonValue golden = read_cases();
  const ChatInputs inputs = request_inputs(member(golden, "inputs"));
  for (const JsonValue& one : member(member(golden, "groups"), "refused").elements())
    EXPECT_FALSE(rendered(one.elements()[0].text(), inputs)) << one.elements()[0].text();
}

INSTANTIATE_TEST_SUITE_P(Of, JinjaCasesTest,
                         testing::Values("filters", "tests", "methods", "expressions", "templates"),
                         [](const auto& group) { return std::string(group.param); });

}  // namespace
}  // namespace loom::core
