// The writer of GGUF files, version 3: metadata and tensors in the given order, each tensor padded
// to the alignment. The same input gives the same bytes. Files are written atomically.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/file.hpp"

namespace loom::core {

class GgufMetadata {
 public:
  void u32(std::string_view key, uint32_t value);
  void f32(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void string(std::string_view key, std::string_view value);
  void strings(std::string_view key, const std::vector<std::string>& values);
  void i32s(std::string_view key, std::span<const int32_t> values);
  void f32s(std::string_view key, std::span<const float> values);

  // Appends the metadata of another.
  void add_all(const GgufMetadata& other);

  const std::string& bytes() const { return bytes_; }
  const std::vector<std::string>& keys() const { return keys_; }

 private:
  void begin(std::string_view key, GgufType type);
  void begin_array(std::string_view key, GgufType type, size_t count);
  std::string bytes_;
  std::vector<std::string> keys_;
};

using GgufSink = std::function<Status(std::span<const std::byte>)>;

struct GgufOutput {
  std::string name;
  std::string_view type;       // of ggml: "Q8_0"
  std::vector<int64_t> shape;  // row-major, as in TensorEntry
  // Passes all bytes of the tensor to the sink, in pieces of any size.
  std::function<Status(const GgufSink& sink)> write;
};

// Errors: invalid_argument (a repeated name or key, a shape that does not fit its type; a tensor
// that writes more or fewer bytes than its size), and those of the file and of the tensors.
Status write_gguf_file(const std::string& path, const GgufMetadata& metadata,
                       const std::vector<GgufOutput>& tensors);
// Writes the same to any sink.
Status write_gguf_to(const GgufSink& sink, const GgufMetadata& metadata,
                     const std::vector<GgufOutput>& tensors);

}  // namespace loom::core
