// FileRef: a file to read or to write. Nearly always it is a path. Otherwise it is bytes in the
// caller's memory, or a string that receives the output. Each has a name for messages, and for
// formats that are chosen by file extension. A path converts to a FileRef.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace loom::core {

class FileRef {
 public:
  FileRef(std::string path) : name_(std::move(path)) {}  // NOLINT(google-explicit-constructor)
  FileRef(const char* path) : name_(path) {}             // NOLINT(google-explicit-constructor)
  // `owner` keeps the bytes alive; if it is null, the caller keeps them for all readers. They begin
  // at a multiple of 64 bytes, as readers of packed weights require.
  static FileRef of_bytes(std::string name, std::span<const std::byte> bytes,
                          std::shared_ptr<const void> owner = nullptr);
  // `out` is set after the whole file is written; it is unchanged on failure.
  static FileRef into(std::string name, std::string& out);

  const std::string& name() const { return name_; }
  operator const std::string&() const { return name_; }  // NOLINT(google-explicit-constructor)

  bool in_memory() const { return in_memory_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  std::string* out() const { return out_; }

 private:
  std::string name_;
  bool in_memory_ = false;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::string* out_ = nullptr;
};

inline FileRef FileRef::of_bytes(std::string name, std::span<const std::byte> bytes,
                                 std::shared_ptr<const void> owner) {
  FileRef ref(std::move(name));
  ref.in_memory_ = true;
  ref.bytes_ = bytes;
  ref.owner_ = std::move(owner);
  return ref;
}

inline FileRef FileRef::into(std::string name, std::string& out) {
  FileRef ref(std::move(name));
  ref.in_memory_ = true;
  ref.out_ = &out;
  return ref;
}

// For cat(): messages identify a file by its name. Does not convert other types to FileRef.
template <std::same_as<FileRef> T>
void append_piece(std::string& out, const T& file) {
  out += file.name();
}

}  // namespace loom::core
