// Which addresses name this machine alone.
#pragma once

#include <string_view>

namespace loom::core {

// Of a number: 127.0.0.1, ::1 and ::ffff:127.0.0.1 do. A name counts as one that others reach.
bool is_loopback(std::string_view address);

}  // namespace loom::core
