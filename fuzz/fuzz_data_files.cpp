// Any bytes as a data set: NPY, NPZ, IDX, safetensors (maybe within gzip) or CSV. Refused in one
// line, or arrays and cells that can all be read.
#include <string>

#include "check.hpp"
#include "io/arrays/array_file.hpp"
#include "io/arrays/csv.hpp"

namespace {

void check_error(const loom::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.str().find('\n') == std::string::npos);
  CHECK(error.offset >= -1);
}

template <class T>
bool usable(const loom::Result<T>& result) {
  if (!result.ok()) check_error(result.error());
  return result.ok();
}

void check_array(const loom::core::ArrayView& array) {
  const auto bytes = loom::core::array_bytes(array.shape, array.type);
  CHECK(bytes.has_value() && *bytes == array.data.size());
  const auto floats = loom::core::array_f32(array);
  if (usable(floats)) CHECK(static_cast<int64_t>(floats->size()) == array.count());
  const auto whole = loom::core::array_i32(array);
  if (usable(whole)) CHECK(static_cast<int64_t>(whole->size()) == array.count());
}

void check_table(loom::core::ByteSource source) {
  constexpr int64_t kMaxCols = 4096;
  auto file = loom::core::CsvFile::open(std::move(source), kMaxCols);
  if (!usable(file) || file->cols() > kMaxCols) return;
  CHECK(file->header().empty() || static_cast<int64_t>(file->header().size()) == file->cols());
  int64_t cells = 0;
  const loom::Status read = file->read([&](const loom::core::CsvCell& cell) {
    ++cells;
    usable(file->number(cell));
    return loom::Status();
  });
  CHECK(read.ok() && cells == file->rows() * file->cols());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "f";
  constexpr uint64_t kMax = uint64_t{1} << 22;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  auto source = loom::core::ByteSource::of(bytes, where, loom::core::MemoryBudget(kMax));
  const auto head = source.next();
  if (!usable(head)) return 0;
  if (!loom::core::ArrayFile::known(*head)) {
    check_table(std::move(source));
    return 0;
  }
  auto arrays = loom::core::ArrayFile::from(std::move(source));
  if (!usable(arrays)) return 0;
  for (const char* name : {"x", "y", ""}) {
    const auto array = arrays->find(name);
    if (usable(array)) check_array(*array);
  }
  return 0;
}
