// safetensors: reader for one file or a sharded checkpoint (model.safetensors.index.json), and for
// files of torch.save, whose tensors have the same types (torch_file.hpp). Plain
// data: names, dtypes, shapes and spans into the memory map, but no layers. Overlaps, holes,
// duplicates, bad sizes, trailing bytes, unknown fields and a header over 100 MB are errors.
// Format: https://huggingface.co/docs/safetensors (8-byte length, JSON header, data).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "io/files/file.hpp"

namespace loom::core {

constexpr uint64_t kMaxSafeHeader = 100'000'000;
constexpr size_t kMaxSafeName = 1024;  // bytes of a tensor name
constexpr size_t kMaxSafeDims = 8;
constexpr size_t kMaxSafeShards = 4096;

// All dtypes of the format. Only some are dtypes of Loom; others can be listed but not loaded.
enum class SafeDType : uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f4,
  f6_e2m3,
  f6_e3m2
};
std::string_view safe_dtype_name(SafeDType dtype);  // "BF16"
uint64_t safe_dtype_bits(SafeDType dtype);          // of one value
Result<SafeDType> parse_safe_dtype(std::string_view name);

struct SafeTensor {
  std::string name;
  SafeDType dtype = SafeDType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // into the map of `file`
  size_t file = 0;                  // index into SafeTensors::files()
  uint64_t file_offset = 0;         // of data[0]
  int64_t count() const;            // product of shape
};

// The weights of a folder in order of preference; "NAME.index.json" lists shards.
inline constexpr std::string_view kCheckpointFiles[] = {"model.safetensors", "pytorch_model.bin"};
// The first of them, or its index, that is in the folder; empty if there is none.
std::string checkpoint_in(const std::string& folder);

class SafeTensors {
 public:
  // `path`: a .safetensors file or one of torch.save, an index .json, or a folder with one of
  // kCheckpointFiles or its index; the first wins. In an index, weight_map and the shards must name
  // the same tensors.
  static Result<SafeTensors> open(const FileRef& path);
  // One file already in memory; `where` names it in messages. The bytes must outlive the result.
  // For tests and fuzzers.
  static Result<SafeTensors> parse(std::span<const std::byte> bytes, const std::string& where);

  const std::vector<SafeTensor>& tensors() const { return tensors_; }  // sorted by name
  const SafeTensor* find(std::string_view name) const;
  // The __metadata__ of all files, in order, equal pairs once.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  const std::vector<MappedFile>& files() const { return files_; }

  // Values [first, first + count) of a tensor as f32 into out[count]; larger types are rounded to
  // nearest even. Errors: unsupported (F4, F6_*), out_of_range.
  static Status to_f32(const SafeTensor& tensor, int64_t first, int64_t count, float* out);
  // Releases the pages of `tensor` to the system after it was converted.
  void release(const SafeTensor& tensor) const;

 private:
  // Adds the tensors and metadata of one file; leaves tensors_ unsorted.
  Status add_file(std::span<const std::byte> bytes, const std::string& where, size_t file);
  Status add_map(const FileRef& path);
  static Result<SafeTensors> open_index(const std::string& path);
  void sort_by_name();

  std::vector<MappedFile> files_;
  std::vector<SafeTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace loom::core
