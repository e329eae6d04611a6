// Small text helpers that a program around the library wants as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

// A byte string made safe for one line of a terminal, which may come from a file: control
// characters as \xNN, cut at `most` bytes with "...".
LOOM_API std::string printable(std::string_view text, size_t most = 60);

// The word of `known` that a mistyped one is closest to: at most one edit in three letters,
// whatever their case. "": none is that close.
LOOM_API std::string closest(std::string_view word, const std::vector<std::string>& known);

// "512M", "2G", "65536": bytes; K, M, G, T count in steps of 1024. Errors: anything else, zero.
LOOM_API Result<uint64_t> parse_size(std::string_view text);
// "512 MB", "4.8 GB", in steps of 1024.
LOOM_API std::string size_text(uint64_t bytes);

}  // namespace loom
