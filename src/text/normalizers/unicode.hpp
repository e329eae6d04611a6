// UTF-8 and the Unicode properties that tokenizers need: lossy decoding, white space, numbers,
// punctuation, cases, normalization forms. They are those of HF `tokenizers`, whose parts use
// different versions of Unicode (unicode_tables.hpp). Every function except to_valid_utf8,
// drain_utf8 and is_valid_utf8 expects valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace loom::core::text {

inline constexpr std::string_view kReplacementChar = "\xEF\xBF\xBD";

struct CodePoint {
  char32_t value = 0;
  size_t length = 1;  // bytes
};

// The code point whose lead byte is text[at].
CodePoint code_point_at(std::string_view text, size_t at);

// The code point that ends just before text[end]; end > 0.
CodePoint code_point_before(std::string_view text, size_t end);

void append_utf8(std::string& out, char32_t c);
std::string utf8(char32_t c);
size_t count_code_points(std::string_view text);

// The single code point of `text`, or 0 when it holds none or several.
char32_t only_code_point(std::string_view text);

bool is_valid_utf8(std::string_view bytes);

// `bytes` with every maximal broken sequence replaced by U+FFFD (the practice of the Unicode
// standard, section 3.9, and of Rust's from_utf8_lossy).
std::string to_valid_utf8(std::string_view bytes);

// Moves the complete characters at the front of `bytes` to `out`, with U+FFFD for invalid ones, and
// leaves a tail that later bytes may complete; with `at_end` the tail is moved too.
void drain_utf8(std::string& bytes, bool at_end, std::string& out);

bool is_white_space(char32_t c);      // property White_Space
bool is_python_space(char32_t c);     // what str.strip() of Python removes
bool is_numeric(char32_t c);          // general categories Nd, Nl, No
bool is_punctuation(char32_t c);      // general category P, and all ASCII punctuation
bool is_nonspacing_mark(char32_t c);  // general category Mn
bool is_other(char32_t c);            // general categories Cc, Cf, Co
bool is_word(char32_t c);             // \w of Rust
void append_lower(std::string& out, char32_t c);
void append_upper(std::string& out, char32_t c);

enum class NormalForm : uint8_t { nfc, nfd, nfkc, nfkd };
std::string normalize(std::string_view text, NormalForm form);

}  // namespace loom::core::text
