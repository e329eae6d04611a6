// Chat templates against jinja2 as transformers sets it up, and what a template may not do.
#include "jinja/chat_template.hpp"

#include <gtest/gtest.h>

#include "text/golden.hpp"

namespace loom::core {
namespace {

ChatInputs inputs_of(const JsonValue& conversation, bool prompt) {
  ChatInputs inputs;
  for (const JsonValue& message : conversation.elements()) {
    inputs.messages.push_back({member(message, "role").text(), member(message, "content").text()});
  }
  inputs.add_generation_prompt = prompt;
  inputs.now = {2026, 11, 2};
  inputs.bos_token = "<s>";
  inputs.eos_token = "</s>";
  return inputs;
}

// Compares with the golden text; null means that jinja2 refuses.
void expect_rendering(const std::string& source, const ChatInputs& inputs,
                      const JsonValue& golden) {
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, "chat_template");
  if (golden.is_null()) {
    EXPECT_FALSE(chat.ok() && chat->render(inputs).ok()) << source;
    return;
  }
  ASSERT_TRUE(chat.ok()) << chat.error().str() << "\n" << source;
  const Result<std::string> text = chat->render(inputs);
  ASSERT_TRUE(text.ok()) << text.error().str() << "\n" << source;
  EXPECT_EQ(*text, golden.text()) << source;
}

TEST(ChatTemplateTest, FamiliesRenderLikeJinja) {
  const JsonValue golden = read_golden("chat.json");
  const auto& conversations = member(golden, "conversations").elements();
  for (const JsonValue& family : member(golden, "families").elements()) {
    SCOPED_TRACE(member(family, "name").text());
    for (size_t i = 0; i < conversations.size(); ++i) {
      for (const bool prompt : {false, true}) {
        const JsonValue& expected =
            member(family, "rendered").elements()[i].elements()[prompt ? 1 : 0];
        expect_rendering(member(family, "template").text(), inputs_of(conversations[i], prompt),
                         expected);
      }
    }
  }
}

TEST(ChatTemplateTest, EveryConstructRendersLikeJinja) {
  const JsonValue golden = read_golden("chat.json");
  const ChatInputs inputs = inputs_of(member(golden, "conversations").elements()[3], true);
  ASSERT_GT(member(golden, "snippets").elements().size(), 80U);
  for (const JsonValue& snippet : member(golden, "snippets").elements()) {
    expect_rendering(member(snippet, "template").text(), inputs, member(snippet, "rendered"));
  }
}

TEST(ChatTemplateTest, TheSharedModelsTemplateIsChatML) {
  const std::string path =
      std::string(LOOM_SOURCE_DIR) + "/../shared/data/models/shakespeare-llama/chat_template.jinja";
  const std::string source = read_whole_file(path);
  if (source.empty()) GTEST_SKIP() << "the shared model is not here";
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, path);
  ASSERT_TRUE(chat.ok()) << chat.error().str();
  ChatInputs inputs;
  inputs.messages = {{"user", "Hi"}};
  EXPECT_EQ(*chat->render(inputs), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

struct Refusal {
  const char* source;
  const char* error;
};

TEST(ChatTemplateTest, WhatIsBeyondTheSubsetIsNamed) {
  const Refusal cases[] = {
      {"a{% macro f() %}{% endmacro %}", "t: at byte 4: the tag 'macro' is not supported"},
      {"{% include 'x' %}", "t: at byte 3: the tag 'include' is not supported"},
      {"{% raw %}{% endraw %}", "t: at byte 3: the tag 'raw' is not supported"},
      {"{% for x in y recursive %}{% endfor %}", "t: at byte 14: 'recursive' is not supported"},
      {"{% set a, b = 1, 2 %}", "t: at byte 8: 'set' with several variables is not supported"},
      {"{{ (1, 2) }}", "t: at byte 5: a tuple is not supported"},
      {"{{ 1.5 }}", "t: at byte 3: a number that is no decimal integer is not supported"},
      {"{{ 2 ** 3 }}", "t: at byte 5: the operator '**' is not supported"},
      {"{{ 1 < 2 < 3 }}", "t: at byte 9: a chain of comparisons is not supported"},
      {"{{ f(*x) }}", "t: at byte 5: '*' before an argument is not supported"},
      {"{{ '\\N{DASH}' }}", "t: at byte 3: the escape '\\N' is not supported"},
      {"{{ 1", "t: at byte 4: a tag without an end"},
      {"{% if x %}", "t: at byte 10: expected '{% endif %}'"},
      {"{% endif %}", "t: at byte 0: unexpected 'endif'"},
      {"{% for x in y %}{% endif %}", "t: at byte 19: unexpected 'endif'"},
      {"{# x", "t: at byte 2: a comment without an end"},
      {"{{ 'x }}", "t: at byte 3: a string without an end"},
      {"{{ ) }}", "t: at byte 3: an unexpected ')'"},
      {"{{ a b }}", "t: at byte 5: expected '}}'"},
      {"{{ }}", "t: at byte 3: expected an expression"},
      {"{% break %}", "t: at byte 3: 'break' outside of a loop"},
      {"{{ a ? b }}", "t: at byte 5: unexpected character '?'"},
      {"\xFF", "t: the template is not UTF-8"},
  };
  for (const Refusal& c : cases) {
    const Result<ChatTemplate> chat = ChatTemplate::parse(c.source, "t");
    ASSERT_FALSE(chat.ok()) << c.source;
    EXPECT_EQ(chat.error().str(), c.error) << c.source;
  }
}

TEST(ChatTemplateTest, WhatGoesWrongWhileRenderingIsNamed) {
  const Refusal cases[] = {
      {"{{ raise_exception('no ' ~ 1) }}", "t: at byte 3: the template refuses the messages: no 1"},
      {"{{ 'x' | urlize }}", "t: at byte 3: the filter 'urlize' is not supported"},
      {"{{ 'x' is wild }}", "t: at byte 3: the test 'wild' is not supported"},
      {"{{ 'x'.encode() }}", "t: at byte 3: the method 'encode' of a string is not supported"},
      {"{{ strftime_now('%Q') }}", "t: at byte 3: the format '%Q' is not supported"},
      {"{{ strftime_now(7) }}", "t: at byte 3: strftime_now() needs a format"},
      {"{{ lipsum(7) }}", "t: at byte 3: the function 'lipsum' is not supported"},
      {"{{ range }}", "t: at byte 0: printing a function is not supported"},
      {"{{ messages }}", "t: at byte 0: printing a list is not supported"},
      {"{{ messages[0] }}", "t: at byte 0: printing a mapping is not supported"},
      {"{{ nothing.x }}", "t: at byte 3: 'nothing' is undefined"},
      {"{{ messages[7].role }}", "t: at byte 3: 'item 7' is undefined"},
      {"{{ 'a' + nothing }}", "t: at byte 3: 'nothing' is undefined"},
      {"{{ 'a' + 1 }}", "t: at byte 3: cannot compute a string + an integer"},
      {"{{ 4 / 2 }}", "t: at byte 3: the operator '/' is not supported"},
      {"{{ 9223372036854775 * 999999 }}", "t: at byte 3: '*' overflows or divides by zero"},
      {"{{ 1 % 0 }}", "t: at byte 3: '%' overflows or divides by zero"},
      {"{{ 'a' < 1 }}", "t: at byte 3: cannot order a string and an integer"},
      {"{% for x in 5 %}{% endfor %}", "t: at byte 3: cannot iterate over an integer"},
      {"{% for a, b in messages %}{% endfor %}",
       "t: at byte 3: cannot unpack a mapping to 2 names"},
      {"{% set x.y = 1 %}", "t: at byte 3: 'x' is no namespace"},
      {"{% set n = namespace() %}{% set n.n = n %}",
       "t: at byte 28: a namespace in a namespace is not supported"},
      {"{% set n = namespace() %}{{ [n] }}",
       "t: at byte 28: a namespace inside of another value is not supported"},
      {"{{ messages() }}", "t: at byte 3: this value is no function"},
      {"{{ 1 in 2 }}", "t: at byte 3: cannot look into an integer"},
      {"{{ messages | tojson(indent=2) }}",
       "t: at byte 3: 'tojson' with arguments is not supported"},
      {"{{ {1: 2} }}", "t: at byte 3: a key that is no string is not supported"},
  };
  ChatInputs inputs;
  inputs.messages = {{"user", "Hi"}};
  for (const Refusal& c : cases) {
    const Result<ChatTemplate> chat = ChatTemplate::parse(c.source, "t");
    ASSERT_TRUE(chat.ok()) << chat.error().str();
    const Result<std::string> text = chat->render(inputs);
    ASSERT_FALSE(text.ok()) << c.source;
    EXPECT_EQ(text.error().str(), c.error) << c.source;
  }
}

TEST(ChatTemplateTest, TheDateOfATemplateIsTheOneOfTheInputs) {
  const std::string source =
      "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}26 Jul 2024"
      "{% endif %}";
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, "t");
  ASSERT_TRUE(chat.ok());
  ChatInputs inputs;
  inputs.now = {2026, 11, 2};
  EXPECT_EQ(*chat->render(inputs), "02 Nov 2026");
}

TEST(ChatTemplateTest, FunctionsAreDefinedUntilAVariableTakesTheName) {
  const std::string source =
      "{{ range is defined }} {{ nothing is defined }} {% set range = 3 %}{{ range }}";
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, "t");
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(*chat->render({}), "True False 3");
}

TEST(ChatTemplateTest, NoTemplateRunsOrGrowsWithoutEnd) {
  const std::string loop = "{% for a in range(99999) %}{% for b in range(99999) %}";
  const std::string ends = "{% endfor %}{% endfor %}";
  const std::pair<std::string, std::string> cases[] = {
      {loop + ends, "rendering takes too many steps"},
      {"{{ range(999999999999) }}", "rendering takes too many steps"},
      {"{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor "
       "%}",
       "rendering takes too much memory"},
      {"{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor "
       "%}",
       "a value of so many parts is not supported"},
      {"{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor "
       "%}",
       "rendering takes too much memory"},
      {"{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}",
       "a value of so many parts is not supported"},
      {"{% for i in range(9999) %}" + std::string(10000, 'x') + "{% endfor %}",
       "rendering gives more than 16777224 bytes"},
  };
  ChatInputs inputs;
  for (const auto& [source, message] : cases) {
    const Result<ChatTemplate> chat = ChatTemplate::parse(source, "t");
    ASSERT_TRUE(chat.ok()) << chat.error().str();
    const Result<std::string> text = chat->render(inputs);
    ASSERT_FALSE(text.ok()) << source;
    EXPECT_EQ(text.error().message.substr(0, 20), message.substr(0, 20)) << source;
  }
}

TEST(ChatTemplateTest, DeepNestingIsRefusedNotFollowed) {
  const std::string many[] = {
      "{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}",
      "{{ " + std::string(100000, '[') + " }}",
      "{{ " + std::string(100000, '-') + "1 }}",
  };
  for (const std::string& source : many) EXPECT_FALSE(ChatTemplate::parse(source, "t").ok());
  std::string nots = "{{ ", sums = "{{ 1", filters = "{{ 1", ifs, dots = "{{ a";
  for (int i = 0; i < 20000; ++i) {
    nots += "not ";
    sums += "+1";
    filters += "|string";
    ifs += "{% if 1 %}";
    dots += ".b";
  }
  for (const std::string& source :
       {nots + "1 }}", sums + " }}", filters + " }}", ifs, dots + " }}"}) {
    const Result<ChatTemplate> chat = ChatTemplate::parse(source, "t");
    ASSERT_FALSE(chat.ok());
    EXPECT_EQ(chat.error().code, Code::unsupported) << chat.error().str();
  }
}

TEST(ChatTemplateTest, BrokenUtf8InMessagesIsRepaired) {
  const Result<ChatTemplate> chat = ChatTemplate::parse("{{ messages[0].content }}", "t");
  ChatInputs inputs;
  inputs.messages = {{"user", "a\xFF"}};
  EXPECT_EQ(*chat->render(inputs), "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace loom::core
