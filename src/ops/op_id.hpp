// OpId: the rows of ops.def, as numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace loom::core {

enum class OpId : uint8_t {
#define LOOM_OP(name, Args) name,
#include "ops/ops.def"
#undef LOOM_OP
};
constexpr int kOpCount = 0
#define LOOM_OP(name, Args) +1
#include "ops/ops.def"
#undef LOOM_OP
    ;
std::string_view op_name(OpId id);

}  // namespace loom::core
