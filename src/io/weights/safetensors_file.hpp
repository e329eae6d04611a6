// SafeTensorsFile: a safetensors checkpoint, one file or shards, as a TensorFile. Entries are in
// the order of the files and of the bytes in them. It owns the data that it exposes.
#pragma once

#include "io/files/file_ref.hpp"
#include "io/weights/safetensors.hpp"
#include "io/weights/tensor_file.hpp"

namespace loom::core {

class SafeTensorsFile final : public TensorFile {
 public:
  explicit SafeTensorsFile(SafeTensors tensors);
  // `path` as SafeTensors::open takes it.
  static Result<std::unique_ptr<TensorFile>> open(const FileRef& path);

  std::span<const TensorEntry> entries() const override { return entries_; }
  Status to_f32(size_t index, int64_t first, int64_t count, float* out) const override;
  std::span<const std::byte> bytes(size_t index) const override;
  void release(size_t index) const override;

  const SafeTensors& tensors() const { return tensors_; }

 private:
  const SafeTensor& at(size_t index) const { return tensors_.tensors()[order_[index]]; }

  SafeTensors tensors_;
  std::vector<size_t> order_;  // of entries, in SafeTensors::tensors()
  std::vector<TensorEntry> entries_;
};

}  // namespace loom::core
