// Small text helpers for programs that use the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

// Makes a byte string, which may come from a file, safe for one line of a terminal. Control
// characters become \xNN, and the text is cut at `most` bytes with "...".
LOOM_API std::string printable(std::string_view text, size_t most = 60);

// The word of `known` that is closest to a mistyped one: at most one edit per three letters,
// ignoring case. Empty if none is that close.
LOOM_API std::string closest(std::string_view word, const std::vector<std::string>& known);

// Parses "512M", "2G", "65536" as bytes; K, M, G, T are powers of 1024. Errors: anything else,
// zero.
LOOM_API Result<uint64_t> parse_size(std::string_view text);
// "512 MB", "4.8 GB", in steps of 1024.
LOOM_API std::string size_text(uint64_t bytes);

}  // namespace loom
