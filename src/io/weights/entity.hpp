// .entity, version 2: one file is a whole model. It has a fixed part of 64 bytes, a JSON header,
// and blobs that start at multiples of 64 bytes. The blobs hold weights in the layout of the
// kernels, so opening a model is a memory map. docs/entity.md has the layout and a worked example.
// Plain data: named blobs and the header's sections; bridge/ and llm/ define the sections.
//
// Opening verifies the fixed part and the header. verify() checks a blob against its own hash on
// request. Together they cover every byte of the file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "io/weights/tensor_file.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

constexpr uint16_t kEntityVersion = 2;
constexpr uint64_t kEntityFixed = 64;
constexpr uint64_t kEntityAlign = 64;
constexpr uint64_t kMaxEntityHeader = 100'000'000;
constexpr size_t kMaxEntityBlobs = size_t{1} << 20;
constexpr size_t kMaxEntityPath = 1024;  // bytes of a blob's path

// text: bytes without a number type, one axis.
enum class BlobLayout : uint8_t { plain, r16, text };
std::string_view blob_layout_name(BlobLayout layout);

struct EntityBlob {
  std::string path;
  BlobLayout layout = BlobLayout::plain;
  DType dtype = DType::u8;  // u8 for text
  Shape shape;
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;  // without the padding that follows
  std::string hash;     // XXH3-128 of the blob and its padding
};

// The version of an entity file that begins with these bytes; 0 means that it is not one.
uint16_t entity_version(std::span<const std::byte> bytes);
// Whether sizes of such a shape fit 64 bits, in every layout and number type.
bool entity_shape_fits(const Shape& shape);

class Entity : public TensorFile {
 public:
  // Errors: bad_file (with the byte), unsupported (another version).
  static Result<std::unique_ptr<Entity>> open(const FileRef& path);
  // A file in memory, which must outlive the result and begin at a multiple of 8 bytes.
  static Result<std::unique_ptr<Entity>> parse(std::span<const std::byte> bytes,
                                               const std::string& where);
  // The result of open() for such a header in a file of `file_bytes`; writers check before they
  // write.
  static Status check_header(std::string_view header, uint64_t file_bytes,
                             const std::string& where);

  // The members of the header besides "blobs".
  const JsonValue& header() const { return header_; }
  const std::vector<EntityBlob>& blobs() const { return blobs_; }  // in the order of the file
  const std::string& where() const { return where_; }
  uint64_t file_bytes() const { return bytes_.size(); }

  std::span<const std::byte> bytes(size_t index) const override;
  // Compares blob `index` with its hash. Reads the whole blob.
  Status verify(size_t index) const;
  // Blob `index` as a tensor over the map. Not for text blobs.
  Tensor tensor(size_t index) const;
  // The content of a text blob, verified; empty if there is none.
  Result<std::string> text(std::string_view path) const;

  std::span<const TensorEntry> entries() const override { return entries_; }
  int64_t find(std::string_view path) const override;
  Status to_f32(size_t index, int64_t first, int64_t count, float* out) const override;
  void release(size_t index) const override;

 private:
  Status read();
  Status read_fixed(uint64_t& header_length);
  Status read_header(std::string_view text, uint64_t file_bytes);
  // The payload begins at byte `payload` and has `available` bytes.
  Status read_blobs(const JsonValue& list, uint64_t payload, uint64_t available);
  Status check_size(const EntityBlob& blob, const JsonValue& item, const std::string& name) const;
  Result<EntityBlob> read_blob(const JsonValue& item, const std::string& location) const;
  Error bad(const JsonValue& at, std::string_view location, std::string_view message) const;

  MappedFile map_;
  std::span<const std::byte> bytes_;
  std::string where_;
  JsonValue header_;
  std::vector<EntityBlob> blobs_;
  std::vector<TensorEntry> entries_;  // of blobs_, with the same index
  std::unordered_map<std::string, size_t> index_;
};

// A blob to be written. `data` is called once, in file order. Its bytes must stay valid until the
// next call.
struct EntityOutput {
  std::string path;
  BlobLayout layout = BlobLayout::plain;
  DType dtype = DType::f32;
  Shape shape;
  std::function<Result<std::span<const std::byte>>()> data;
};
EntityOutput tensor_output(std::string path, const Tensor& tensor);  // must outlive the writing
EntityOutput text_output(std::string path, std::string text);

struct EntityProgress {
  std::function<bool(uint64_t done, uint64_t total)> report;  // bytes; false: cancelled
};

// Writes the file atomically; `keep` as in AtomicFile::commit(). `header`: the sections, an object.
// Equal input gives equal bytes.
Status write_entity(const FileRef& path, const JsonValue& header,
                    const std::vector<EntityOutput>& blobs, const EntityProgress& progress = {},
                    const std::string& keep = {});

}  // namespace loom::core
