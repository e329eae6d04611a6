// Helpers of the io tests: building safetensors bytes, temporary folders, and comparing an Error
// with its exact text.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "support/paths.hpp"

namespace loom::core::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A file with this header length field, whatever the header is.
inline std::string safetensors_with_length(uint64_t length, std::string_view rest) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file.append(rest);
}

inline std::string safetensors_file(std::string_view header, std::string_view data = {}) {
  return safetensors_with_length(header.size(), std::string(header).append(data));
}

template <class T>
void expect_error(const Result<T>& result, Code code, std::string_view text) {
  ASSERT_FALSE(result.ok()) << "expected: " << text;
  EXPECT_EQ(result.error().str(), text);
  EXPECT_EQ(code_name(result.error().code), code_name(code));
}

// A folder that the destructor removes.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = "loom-" + std::to_string(getpid()) + "-" + test->name();
    for (char& c : name) {
      if (c == '/') c = '-';
    }
    path_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string path(std::string_view name = {}) const { return (path_ / name).string(); }
  void write(std::string_view name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  size_t file_count() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::filesystem::path path_;
};

// A file of the project's shared data, or "" if it is missing (a plain clone).
inline std::string shared_data(std::string_view name) {
  const std::filesystem::path path =
      std::filesystem::path(loom_test::source_path("../shared/data")) / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace loom::core::test
