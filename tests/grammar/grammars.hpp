// Grammars and schemas for the tests of this room.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "grammar/automaton.hpp"
#include "grammar/gbnf.hpp"
#include "grammar/schemas/json_schema.hpp"

namespace loom::core::grammar::test {

inline Result<std::shared_ptr<const Program>> gbnf(std::string_view text) {
  Builder builder;
  LOOM_ASSIGN(const ExprId root, add_gbnf(builder, text));
  return Program::compile(builder, root);
}

inline Result<std::shared_ptr<const Program>> schema(std::string_view text,
                                                     const SchemaOptions& options = {}) {
  Builder builder;
  LOOM_ASSIGN(const JsonValue value, parse_json(text, "schema"));
  LOOM_ASSIGN(const ExprId root, add_json_schema(builder, value, options));
  return Program::compile(builder, root);
}

// The whole of `text` is in the language.
inline bool fits(const std::shared_ptr<const Program>& program, std::string_view text) {
  Automaton automaton(program, 16);
  ConfigSet at = automaton.start();
  for (const char c : text) at = automaton.step(at, static_cast<uint8_t>(c));
  EXPECT_FALSE(automaton.overflowed());
  return at.ends;
}

}  // namespace loom::core::grammar::test
