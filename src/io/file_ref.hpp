// FileRef: which file to read or to write. Nearly always a path; else bytes that a caller has in
// memory, or a text that takes what is written, each under a name for messages (and for formats
// that are told by the ending of a name). Wherever a path is enough, a FileRef is one.
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
  // `owner` keeps the bytes; null: they outlive everything that reads them. They begin at a
  // multiple of 64 bytes, as readers of packed weights expect.
  static FileRef of_bytes(std::string name, std::span<const std::byte> bytes,
                          std::shared_ptr<const void> owner = nullptr);
  // `out` is set when the whole file is written, and stays as it is where that fails.
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

// For cat(): messages call a file by its name. Of nothing that would first have to become a
// FileRef.
template <std::same_as<FileRef> T>
void append_piece(std::string& out, const T& file) {
  out += file.name();
}

}  // namespace loom::core
