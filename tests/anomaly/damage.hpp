// Helpers of the tests of damaged files: a flipped bit, and checks of every refusal. Files are
// called "f" there.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/result.hpp"

namespace loom::core::test {

inline std::string flip(std::string bytes, size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  return bytes;
}

inline void expect_one_line(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  EXPECT_EQ(error.str().find('\n'), std::string::npos) << error.str();
}
// An error about the file.
inline void expect_plain_error(const Error& error) {
  EXPECT_EQ(error.where, "f");
  expect_one_line(error);
}
// An error about the file or a part of it.
inline void expect_error_inside(const Error& error) {
  EXPECT_TRUE(error.where.starts_with("f")) << error.str();
  expect_one_line(error);
}

}  // namespace loom::core::test
