// Any text as a grammar: JSON as a schema, anything else as GBNF. It is refused in one line, or
// compiled. Then exactly the tokens of its masks may follow.
#include "check.hpp"
#include "grammar/gbnf.hpp"
#include "grammar/matcher.hpp"
#include "grammar/schemas/json_schema.hpp"

namespace {

using namespace loom::core;
using namespace loom::core::grammar;

std::shared_ptr<const Vocabulary> vocabulary() {
  static const auto made = [] {
    std::vector<std::string> tokens;
    for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
    for (const char* text : {"{\"", "\":", "\",", "true", "12", "ab", "\\u00", "  ", ""})
      tokens.emplace_back(text);
    return std::make_shared<const Vocabulary>(std::move(tokens));
  }();
  return made;
}

void check_error(const loom::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.str().find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Builder builder;
  const loom::Result<JsonValue> schema = parse_json(text, "schema");
  const auto root = schema.ok() ? add_json_schema(builder, *schema) : add_gbnf(builder, text);
  if (!root.ok()) return check_error(root.error()), 0;
  const auto program = Program::compile(builder, *root);
  if (!program.ok()) return check_error(program.error()), 0;
  Matcher matcher(*program, vocabulary());
  for (uint32_t step = 0; step < 24; ++step) {
    const auto bits = matcher.allowed();
    if (!bits.ok()) return check_error(bits.error()), 0;
    std::vector<int32_t> may;
    for (size_t id = 0; id < vocabulary()->size(); ++id) {
      const bool allowed = ((*bits)[id / 64] >> (id % 64) & 1) != 0;
      if (allowed) may.push_back(static_cast<int32_t>(id));
    }
    if (may.empty()) break;
    const int32_t id = may[(step * 7919u + static_cast<uint32_t>(size)) % may.size()];
    if (!matcher.accept(id)) break;  // only if it became too ambiguous
  }
  return 0;
}
