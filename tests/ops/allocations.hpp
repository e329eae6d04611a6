// The number of allocations (operator new) this test program has made so far; see
// allocations_test.cpp.
#pragma once

#include <cstdint>

namespace loom::core::test {

int64_t allocations();

}  // namespace loom::core::test
