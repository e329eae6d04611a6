// Any bytes as a data set: NPY, NPZ, IDX, safetensors (maybe within gzip) or CSV. Refused in one
// line, or arrays and cells that can all be read.
#include <string>

#include "check.hpp"
#include "io/array_file.hpp"
#include "io/csv.hpp"

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

void check_array(const loom::ArrayView& array) {
  const auto bytes = loom::array_bytes(array.shape, array.type);
  CHECK(bytes.has_value() && *bytes == array.data.size());
  const auto floats = loom::array_f32(array);
  if (usable(floats)) CHECK(static_cast<int64_t>(floats->size()) == array.count());
  const auto whole = loom::array_i32(array);
  if (usable(whole)) CHECK(static_cast<int64_t>(whole->size()) == array.count());
}

void check_table(std::string_view text) {
  const auto table = loom::CsvTable::parse(text, "f");
  if (!usable(table)) return;
  CHECK(table->header().empty() || static_cast<int64_t>(table->header().size()) == table->cols());
  for (int64_t row = 0; row < table->rows(); ++row) {
    for (int64_t col = 0; col < table->cols(); ++col) usable(table->number(row, col));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "f";
  constexpr uint64_t kMost = uint64_t{1} << 22;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  auto file = loom::DataFile::of(bytes, where, kMost);
  if (!usable(file)) return 0;
  const std::span<const std::byte> inside = file->bytes();
  if (!loom::ArrayFile::known(inside)) {
    check_table({reinterpret_cast<const char*>(inside.data()), inside.size()});
    return 0;
  }
  const auto arrays = loom::ArrayFile::from(std::move(*file), where);
  if (!usable(arrays)) return 0;
  for (const char* name : {"x", "y", ""}) {
    const auto array = arrays->find(name);
    if (usable(array)) check_array(*array);
  }
  return 0;
}
