// Properties of the terminal: its width, and whether it shows colours.
#pragma once

#include <string>
#include <string_view>

namespace loom::cli {

constexpr int kPlainWidth = 100;  // columns of text that no terminal shows

// Columns for text on stdout: $COLUMNS, or the width of the terminal, or `plain` without both.
int terminal_width(int plain = kPlainWidth);

enum class Style { bold, dim, red, blue };

// The text in a style, if the terminal on that stream shows colours. NO_COLOR, TERM=dumb and a
// file or a pipe disable them.
std::string styled_out(Style style, std::string_view text);  // on stdout
std::string styled_err(Style style, std::string_view text);  // on stderr

}  // namespace loom::cli
