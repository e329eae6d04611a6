#include "evolve/dna/points_file.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "io/arrays/array_file.hpp"
#include "io/arrays/csv.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxColumns = int64_t{1} << 20;

Result<FilePoints> points_of_csv(ByteSource source, const std::string& path) {
  const MemoryBudget memory = source.memory();
  LOOM_ASSIGN(CsvFile file, CsvFile::open(std::move(source), kMaxColumns));
  if (file.cols() > kMaxColumns)
    return bad_file(cat("has rows of more than ", kMaxColumns, " cells"), path);
  if (file.rows() < 1) return bad_file("has no rows of data", path);
  LOOM_ASSIGN(const MemoryShare booked,
              memory.take(static_cast<uint64_t>(file.rows() * file.cols()) * sizeof(float),
                          "the values", path));
  std::vector<bool> number(static_cast<size_t>(file.cols()), false);
  FilePoints out;
  out.n = file.rows();
  LOOM_TRY(file.read([&](const CsvCell& cell) -> Status {
    const Result<float> value = file.number(cell);
    const auto col = static_cast<size_t>(cell.col);
    if (cell.row == 0) number[col] = value.ok();
    if (!number[col]) return {};  // names, kinds: nothing that has a distance
    if (!value.ok()) return value.error();
    out.values.push_back(*value);
    return {};
  }));
  out.d = std::count(number.begin(), number.end(), true);
  if (out.d == 0) return bad_file("has no column of numbers", path);
  return out;
}

}  // namespace

Result<FilePoints> read_points(const std::string& path, const std::string& array,
                               const MemoryBudget& memory) {
  LOOM_ASSIGN(ByteSource source, ByteSource::open(path, memory));
  std::string packed;
  std::span<const std::byte> head = source.stored();
  if (source.packed()) {
    LOOM_ASSIGN(packed, source.head(512));
    head = std::as_bytes(std::span(packed));
  }
  if (!ArrayFile::known(head)) return points_of_csv(std::move(source), path);
  LOOM_ASSIGN(ArrayFile file, ArrayFile::from(std::move(source)));
  LOOM_ASSIGN(const ArrayView view, file.find(array));
  if (view.shape.empty() || view.count() < 1)
    return bad_file(cat("the array ", view.shape_text(), " holds no points"), view.where);
  LOOM_ASSIGN(
      const MemoryShare booked,
      memory.take(static_cast<uint64_t>(view.count()) * sizeof(float), "the values", view.where));
  FilePoints out;
  LOOM_ASSIGN(out.values, array_f32(view));
  out.n = view.shape[0];
  out.d = view.count() / out.n;
  return out;
}

}  // namespace loom::core
