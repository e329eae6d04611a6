// The text of a table as UTF-8. UTF-8 is read as a stream, with or without a byte order mark.
// UTF-16 is decoded in memory; so are bytes that are not UTF-8, as Windows-1252 (a superset of
// Latin-1).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/bytes/byte_source.hpp"

namespace loom::core {

// encoding: utf-8, utf-16, utf-16be, latin-1; empty means detected. A note says when the text is
// not UTF-8. Errors: invalid_argument (another name); bad_file (not UTF-8, but declared as such;
// half a UTF-16 character); out_of_memory.
Result<ByteSource> decode_text(ByteSource source, std::string_view encoding,
                               std::vector<std::string>& notes);

// Whether the bytes begin as UTF-16 does: with a mark, or with text whose every other byte is 0.
bool is_utf16(std::span<const std::byte> head);

// Appends a character in UTF-8.
void append_utf8(uint32_t character, std::string& out);

}  // namespace loom::core
