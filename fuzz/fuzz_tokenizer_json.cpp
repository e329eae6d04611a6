// Any text as tokenizer.json, up to its last '}'; what follows, at most 64 bytes, is encoded and
// decoded. Refused in one line, or a tokenizer whose ids are in range and decode without error, all
// at once and one by one.
#include <string>

#include "check.hpp"
#include "text/tokenizer.hpp"

namespace {

// As one of a pair, cut to a few ids: no more than those, a type for each.
void check_pair(const loom::core::Tokenizer& tokenizer, std::string_view text) {
  const std::string_view second = text.substr(text.size() / 2);
  for (const size_t most : {0, 3, 8}) {
    const auto pair = tokenizer.encode_texts(text, &second, most);
    if (!pair.ok()) continue;
    CHECK(pair->types.size() == pair->ids.size());
    CHECK(most == 0 || pair->ids.size() <= most);
    for (const loom::core::TokenId id : pair->ids) CHECK(id >= 0 && id < tokenizer.vocab_size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "tokenizer.json";
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t brace = input.rfind('}');
  const size_t end = brace == std::string_view::npos ? size : brace + 1;
  const auto tokenizer = loom::core::Tokenizer::parse(input.substr(0, end), where);
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.error().message.empty());
    CHECK(tokenizer.error().str().find('\n') == std::string::npos);
    return 0;
  }
  const std::string_view text = input.substr(end, 64);
  const auto ids = tokenizer->encode(text);
  if (!ids.ok()) return 0;
  for (const loom::core::TokenId id : *ids) CHECK(id >= 0 && id < tokenizer->vocab_size());
  const auto whole = tokenizer->decode(*ids);
  CHECK(whole.ok());
  loom::core::StreamDecoder stream(*tokenizer);
  std::string pieces;
  for (const loom::core::TokenId id : *ids) {
    const auto piece = stream.push(id);
    CHECK(piece.ok());
    pieces += *piece;
  }
  pieces += stream.finish();
  CHECK(pieces == *whole);
  check_pair(*tokenizer, text);
  return 0;
}
