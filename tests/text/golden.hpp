// Reading the goldens of this folder. Not a test: a file that is missing or broken aborts the test
// program's test through EXPECT failures in the caller, which sees a null value.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "io/json/json.hpp"
#include "support/paths.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {

inline std::string read_whole_file(const std::string& path) {
  std::string bytes;
  if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
    char buffer[65536];
    while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) bytes.append(buffer, n);
    std::fclose(file);
  }
  return bytes;
}

inline JsonValue read_golden(const std::string& name) {
  const std::string path = loom_test::source_path("tests/text/golden/") + name;
  Result<JsonValue> value = parse_json(read_whole_file(path), name);
  EXPECT_TRUE(value.ok()) << (value.ok() ? "" : value.error().str());
  return value.ok() ? std::move(*value) : JsonValue();
}

inline const JsonValue& member(const JsonValue& object, std::string_view key) {
  static const JsonValue null{};
  const JsonValue* found = object.find(key);
  EXPECT_NE(found, nullptr) << key;
  return found != nullptr ? *found : null;
}

inline std::vector<TokenId> ids_of(const JsonValue& list) {
  std::vector<TokenId> ids;
  for (const JsonValue& element : list.elements()) {
    ids.push_back(static_cast<TokenId>(*element.as_int("id")));
  }
  return ids;
}

inline Tokenizer load_tokenizer(const JsonValue& value) {
  Result<Tokenizer> tokenizer = Tokenizer::parse(dump_json(value), "tokenizer.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().str();
  return std::move(*tokenizer);
}

inline const char* const kFamilies[] = {"gpt2",  "roberta",  "llama3", "qwen2",
                                        "gpt4o", "deepseek", "smollm", "llama2",
                                        "gemma", "mistral",  "clip",   "pieces"};

}  // namespace loom::core
