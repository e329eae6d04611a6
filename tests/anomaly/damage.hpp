// What the tests of damaged files share: a flipped bit, and what every refusal looks like. Files
// are called "f" there.
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
// About the file.
inline void expect_plain_error(const Error& error) {
  EXPECT_EQ(error.where, "f");
  expect_one_line(error);
}
// About the file or a part of it.
inline void expect_error_inside(const Error& error) {
  EXPECT_TRUE(error.where.starts_with("f")) << error.str();
  expect_one_line(error);
}

}  // namespace loom::core::test
