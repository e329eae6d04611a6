// The reader of TFLite files, see model.hpp. Room-private.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/tflite/flat.hpp"
#include "formats/tflite/model.hpp"

namespace loom::core {

constexpr size_t kMaxTfliteSparse = size_t{1} << 28;  // places of a sparse axis

class TfliteReader {
 public:
  TfliteReader(std::span<const std::byte> file, const std::string& where)
      : file_(file), where_(where), flat_(file) {}
  Result<TfliteModel> model();

 private:
  Error wrong(std::string_view what, std::string_view which) const;
  Status graph(const FlatTable& from);
  void keep_empty();
  Status tensor(const FlatTable& from, const std::string& which);
  Status quantization(const FlatTable& from, const std::string& which, TfliteTensor& t);
  Status sparsity(const FlatTable& from, const std::string& which, TfliteTensor& t);
  static bool indices(const FlatTable& from, int field, std::vector<int64_t>& out);
  Status data(uint32_t buffer, const std::string& which, TfliteTensor& t);
  Status op(const FlatTable& from, const std::string& which);
  Status options(const FlatTable& from, const std::string& which, TfliteOp& made);
  Status check_indexes(const std::vector<int64_t>& list, bool may_lack,
                       std::string_view which) const;

  std::span<const std::byte> file_;
  const std::string& where_;
  FlatFile flat_;
  std::vector<FlatTable> codes_, buffers_;
  TfliteModel out_;
};

}  // namespace loom::core
