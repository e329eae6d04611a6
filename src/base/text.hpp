// Small text helpers for messages and names: no locale, no iostream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace loom::core {

std::string to_lower_ascii(std::string_view text);

// "a, b, c"
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// A byte string made safe for one line of a message: control bytes as \xNN, cut at `max` bytes with
// "...".
std::string printable(std::string_view text, size_t max = 60);

// Concatenates strings and numbers: cat("row ", 3, " of ", n).
inline void append_piece(std::string& out, std::string_view piece) {
  out += piece;
}
inline void append_piece(std::string& out, const char* piece) {
  out += piece;
}
inline void append_piece(std::string& out, char piece) {
  out += piece;
}
// The shortest digits that read back as the same number: 0.1, 16777216, 1e-05.
void append_piece(std::string& out, float piece);
void append_piece(std::string& out, double piece);
template <class T>
requires(std::is_integral_v<T>) void append_piece(std::string& out, T value) {
  out += std::to_string(value);
}

template <class... Pieces>
std::string cat(const Pieces&... pieces) {
  std::string out;
  (append_piece(out, pieces), ...);
  return out;
}

}  // namespace loom::core
