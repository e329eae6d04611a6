// Replaces operator new of the test program by a counting one. It has a file of its own: if both
// ends of an allocation are inlined, compilers report malloc and delete as a mismatch.
#include "ops/allocations.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace {
std::atomic<int64_t> g_count{0};
}

void* operator new(size_t size) {
  g_count.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) std::abort();
  return memory;
}
// The standard library's sorts allocate their buffers with this operator.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  g_count.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace loom::core::test {

int64_t allocations() {
  return g_count.load();
}

TEST(Allocations, AreCounted) {
  const int64_t before = allocations();
  const auto number = std::make_unique<int64_t>(before);
  EXPECT_EQ(allocations() - *number, 1);
}

}  // namespace loom::core::test
