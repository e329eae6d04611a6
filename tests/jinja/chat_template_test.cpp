// Chat templates against jinja2 as transformers sets it up, and what a template may not do.
#include "jinja/chat_template.hpp"

#include <gtest/gtest.h>

#include "jinja/request.hpp"
#include "support/paths.hpp"
#include "text/golden.hpp"

namespace loom::core {
namespace {

ChatInputs inputs_of(const JsonValue& conversation, bool prompt) {
  ChatInputs inputs;
  for (const JsonValue& message : conversation.elements()) {
    inputs.messages.push_back(
        {member(message, "role").text(), member(message, "content").text(), {}});
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

// tests/outside/templates.py wrote them, and draws others where jinja2 is installed.
TEST(ChatTemplateTest, FiveHundredRandomTemplatesRenderLikeJinja) {
  const JsonValue golden = read_golden("jinja.json");
  const ChatInputs inputs = request_inputs(member(golden, "inputs"));
  const auto& cases = member(golden, "cases").elements();
  EXPECT_EQ(cases.size(), 500u);
  for (const JsonValue& one : cases)
    expect_rendering(one.elements()[0].text(), inputs, one.elements()[1]);
}

// 1,000 damaged templates of all families. A text that is not a template is a bad file. A template
// renders text of bounded size, within the steps of the meter.
TEST(ChatTemplateTest, DamagedTemplatesAreErrorsOrTexts) {
  const JsonValue golden = read_golden("chat.json");
  const auto& families = member(golden, "families").elements();
  const ChatInputs inputs = inputs_of(member(golden, "conversations").elements()[3], true);
  uint64_t state = 37;
  const auto draw = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text = member(families[draw(families.size())], "template").text();
    const size_t at = draw(text.size()), from = draw(text.size());
    switch (draw(4)) {
      case 0: text.resize(at); break;
      case 1: text[at] ^= static_cast<char>(1 + draw(255)); break;
      case 2: text.erase(at, 1 + draw(8)); break;
      default: text.insert(at, text.substr(from, draw(200))); break;
    }
    const Result<ChatTemplate> chat = ChatTemplate::parse(text, "t");
    if (!chat.ok()) {
      const Code code = chat.error().code;
      EXPECT_TRUE(code == Code::bad_file || code == Code::unsupported) << chat.error().str();
      EXPECT_EQ(chat.error().str().find('\n'), std::string::npos);
      ++refused;
      continue;
    }
    const Result<std::string> made = chat->render(inputs);
    if (made.ok()) {
      EXPECT_LT(made->size(), size_t{16} << 20);
    } else {
      EXPECT_EQ(made.error().where, "t");
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 900);
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
      loom_test::source_path("../shared/data/models/shakespeare-llama/chat_template.jinja");
  const std::string source = read_whole_file(path);
  if (source.empty()) GTEST_SKIP() << "the shared model is not here";
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, path);
  ASSERT_TRUE(chat.ok()) << chat.error().str();
  ChatInputs inputs;
  inputs.messages = {{"user", "Hi", {}}};
  EXPECT_EQ(*chat->render(inputs), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

struct Refusal {
  const char* source;
  const char* error;
};

TEST(ChatTemplateTest, WhatCannotBeReadIsNamed) {
  const Refusal cases[] = {
      {"{% include 'x' %}", "t: at byte 3: the tag 'include' is not supported"},
      {"{% import 'x' as y %}", "t: at byte 3: the tag 'import' is not supported"},
      {"{% extends 'x' %}", "t: at byte 3: the tag 'extends' is not supported"},
      {"{% block x %}{% endblock %}", "t: at byte 3: the tag 'block' is not supported"},
      {"{% do x %}", "t: at byte 3: the tag 'do' is not supported"},
      {"{{ '\\N{DASH}' }}", "t: at byte 3: the escape '\\N' is not supported"},
      {"{{ 99999999999999999999 }}", "t: at byte 3: a number that large is not supported"},
      {"{{ 1", "t: at byte 4: a tag without an end"},
      {"{% if x %}", "t: at byte 10: expected '{% endif %}'"},
      {"{% endif %}", "t: at byte 0: unexpected 'endif'"},
      {"{% for x in y %}{% endif %}", "t: at byte 19: unexpected 'endif'"},
      {"{% macro f(a=1, b) %}{% endmacro %}",
       "t: at byte 17: a parameter without a default after one that has it"},
      {"{% call x %}{% endcall %}", "t: at byte 10: expected a call"},
      {"{% raw %}x", "t: at byte 9: a raw block without an end"},
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
      {"{{ lipsum(7) }}", "t: at byte 3: 'lipsum' is undefined"},
      {"{{ range }}", "t: at byte 0: printing a function is not supported"},
      {"{{ nothing.x }}", "t: at byte 3: 'nothing' is undefined"},
      {"{{ messages[7].role }}", "t: at byte 3: 'item 7' is undefined"},
      {"{{ messages.append(1) }}", "t: at byte 3: 'append' is undefined"},
      {"{{ 'a' + nothing }}", "t: at byte 3: 'nothing' is undefined"},
      {"{{ 'a' + 1 }}", "t: at byte 3: cannot compute a string + an integer"},
      {"{{ 9223372036854775 * 999999 }}", "t: at byte 3: '*' overflows or divides by zero"},
      {"{{ 1 % 0 }}", "t: at byte 3: '%' overflows or divides by zero"},
      {"{{ 1 / 0 }}", "t: at byte 3: '/' divides by zero"},
      {"{{ 'a' < 1 }}", "t: at byte 3: cannot order a string and an integer"},
      {"{{ messages | map('upper') | length }}", "t: at byte 3: no length of a generator"},
      {"{% for x in 5 %}{% endfor %}", "t: at byte 3: cannot iterate over an integer"},
      {"{% for a, b, c in messages %}{% endfor %}",
       "t: at byte 3: cannot unpack 2 values of a mapping to 3 names"},
      {"{% set x.y = 1 %}", "t: at byte 3: 'x' is not a namespace"},
      {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
       "t: at byte 33: 'm' takes 1 arguments, and not ''"},
      {"{% set n = namespace() %}{% set n.n = n %}",
       "t: at byte 28: a namespace or a function in a namespace is not supported"},
      {"{% set n = namespace() %}{{ [n] }}",
       "t: at byte 28: a namespace or a function inside of another value is not supported"},
      {"{{ messages() }}", "t: at byte 3: a list is not a function"},
      {"{{ 1 in 2 }}", "t: at byte 3: cannot look into an integer"},
      {"{{ {none: 2} }}",
       "t: at byte 3: a key that is neither a string nor an integer is not supported"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
       "t: at byte 18: calls are nested too deeply"},
  };
  ChatInputs inputs;
  inputs.messages = {{"user", "Hi", {}}};
  for (const Refusal& c : cases) {
    const Result<ChatTemplate> chat = ChatTemplate::parse(c.source, "t");
    ASSERT_TRUE(chat.ok()) << c.source << chat.error().str();
    const Result<std::string> text = chat->render(inputs);
    ASSERT_FALSE(text.ok()) << c.source;
    EXPECT_EQ(text.error().str(), c.error) << c.source;
  }
}

// The output of jinja2 for the same template. tests/outside/templates.py compares many more.
TEST(ChatTemplateTest, WhatRealTemplatesUseRendersLikeJinja) {
  const std::pair<const char*, const char*> cases[] = {
      {"{% macro f(a, b='z') %}[{{ a }}{{ b }}{{ varargs | length }}]{% endmacro %}"
       "{{ f(1) }}{{ f(1, b=2) }}{{ f(1, 2, 3) }}",
       "[1z0][120][121]"},
      {"{% macro f() %}<{{ caller(2) }}>{% endmacro %}{% call(x) f() %}{{ x + 1 }}{% endcall %}",
       "<3>"},
      {"{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is sequence else x ~ loop.depth }}"
       "{% endfor %}",
       "112233"},
      {"{% for x in 'abc' %}{{ loop.cycle(1, 2) }}{{ loop.changed(x == 'a') }}{% endfor %}",
       "1True2True1False"},
      {"{% set x %} a {% endset %}{% set y | trim | upper %} b {% endset %}{{ x }}{{ y }}", " a B"},
      {"{% filter upper %}a{% endfilter %}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", "A3"},
      {"{{ messages }} {{ (1,) }} {{ [1.0, none, true, \"it's\"] }}",
       "[{'role': 'user', 'content': 'Hi'}] (1,) [1.0, None, True, \"it's\"]"},
      {"{{ {'b': 1, 'a': [1.5, 'é']} | tojson(indent=2, sort_keys=true) }}",
       "{\n  \"a\": [\n    1.5,\n    \"é\"\n  ],\n  \"b\": 1\n}"},
      {"{{ ['é', 1e20] | tojson(ensure_ascii=true, separators=(',', ':')) }}",
       "[\"\\u00e9\",1e+20]"},
      {"{{ 7 / 2 }} {{ 4 / 2 }} {{ -7 // 2 }} {{ 2 ** 10 }} {{ 1 < 2 < 3 }} {{ 0.1 + 0.2 }}",
       "3.5 2.0 -4 1024 True 0.30000000000000004"},
      {"{{ 2.5 | round }} {{ 2.675 | round(2) }} {{ '3.9' | int }} {{ 'x' | int(7) }}",
       "2.0 2.67 3 7"},
      {"{{ {512: 'a'}[512] }} {{ {'items': 1}.items is callable }} {{ {'items': 1}['items'] }}",
       "a True 1"},
      {"{{ [3, 1, 2] | sort(reverse=true) }} {{ ['b', 'A'] | sort }} {{ [1, 1] | unique | list }}",
       "[3, 2, 1] ['A', 'b'] [1]"},
      {"{% for k, v in {'b': 2, 'a': 1} | dictsort %}{{ k }}{{ v }}{% endfor %}", "a1b2"},
      {"{% for k, g in messages | groupby('role') %}{{ k }}{{ g | length }}{% endfor %}", "user1"},
      {"{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
      {"{{ '%s-%03d' % ('a', 7) }} {{ '{} {b}'.format(1, b=2) }}", "a-007 1 2"},
      {"{{ '<b>' | safe + '<' }}", "<b>&lt;"},
      // A name that the outermost level sets first is not the conversation's, not even before.
      {"{% for i in [1] %}[{{ tools }}]{% endfor %}{% set tools = 1 %}{{ tools }}", "[]1"},
  };
  ChatInputs inputs;
  inputs.messages = {{"user", "Hi", {}}};
  for (const auto& [source, expected] : cases) {
    const Result<ChatTemplate> chat = ChatTemplate::parse(source, "t");
    ASSERT_TRUE(chat.ok()) << source << chat.error().str();
    const Result<std::string> text = chat->render(inputs);
    ASSERT_TRUE(text.ok()) << source << text.error().str();
    EXPECT_EQ(*text, expected) << source;
  }
}

TEST(ChatTemplateTest, MessagesToolsAndVariablesReachTheTemplate) {
  const auto json = [](const char* text) { return *parse_json(text, "test"); };
  ChatInputs inputs;
  inputs.messages = {
      {"assistant", "", json(R"({"content": null, "tool_calls": [{"id": "1"}], "role": "x"})")}};
  inputs.tools = json(R"([{"type": "function", "function": {"name": "f"}}])");
  inputs.variables = json(R"({"enable_thinking": false, "level": 2.5})");
  const std::string source =
      "{{ messages[0] }} {{ tools[0].function.name }} {{ documents }} {{ enable_thinking }} "
      "{{ level }}";
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, "t");
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(*chat->render(inputs),
            "{'role': 'assistant', 'tool_calls': [{'id': '1'}]} f None False 2.5");
  inputs.variables = json(R"({"messages": 1})");
  EXPECT_EQ(chat->render(inputs).error().str(),
            "the template variable 'messages' is set by the conversation; choose another name");
}

// As transformers 5: MiniMax-M2 wrote "None" for a call without content, Bielik failed on it.
TEST(ChatTemplateTest, WhatIsNullInAMessageIsUndefined) {
  const Result<ChatTemplate> chat = ChatTemplate::parse(
      "{% for m in messages %}{{ m.content is defined }}({{ m.content }},"
      "{{ m.name is defined }}){% endfor %}",
      "t");
  ASSERT_TRUE(chat.ok());
  ChatInputs inputs;
  inputs.messages = {{"user", "Hi", {}},
                     {"assistant", "", *parse_json(R"({"content": null, "name": null})", "m")},
                     {"tool", "", {}}};
  EXPECT_EQ(*chat->render(inputs), "True(Hi,False)False(,False)True(,False)");
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
      {"{{ range(999999999999) }}", "range() of more than 100000"},
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
  const std::string large[] = {
      "{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}",
      "{{ " + std::string(100000, '[') + " }}",
      "{{ " + std::string(100000, '-') + "1 }}",
  };
  for (const std::string& source : large) EXPECT_FALSE(ChatTemplate::parse(source, "t").ok());
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
  inputs.messages = {{"user", "a\xFF", {}}};
  EXPECT_EQ(*chat->render(inputs), "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace loom::core
