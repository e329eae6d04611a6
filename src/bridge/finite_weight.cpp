#include "bridge/finite_weight.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include "base/text.hpp"
#include "dtype/r16/r16_scales.hpp"

namespace loom::core {
namespace {

constexpr uint32_t kInfinity = 0x7f800000;
constexpr int64_t kBlock = 64;  // a fixed count, so that compilers use vectors

// The bits of the largest magnitude: above kInfinity a NaN.
uint32_t largest_bits(const float* values, int64_t count) {
  uint32_t lanes[kBlock] = {}, largest = 0;
  const auto magnitude = [](float v) { return std::bit_cast<uint32_t>(v) & 0x7fffffffU; };
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (int64_t l = 0; l < kBlock; ++l) {
      const uint32_t bits = magnitude(values[i + l]);
      lanes[l] = bits > lanes[l] ? bits : lanes[l];
    }
  }
  for (; i < count; ++i) largest = std::max(largest, magnitude(values[i]));
  for (const uint32_t bits : lanes) largest = std::max(largest, bits);
  return largest;
}

// The index of the first bad value, or -1 if there is none.
int64_t first_bad(const float* values, int64_t count, bool infinities) {
  const uint32_t largest = largest_bits(values, count);
  if (largest < kInfinity || (infinities && largest == kInfinity)) return -1;
  for (int64_t i = 0; i < count; ++i) {
    if (infinities ? std::isnan(values[i]) : !std::isfinite(values[i])) return i;
  }
  return -1;
}

// columns: 0 for a vector.
std::string element(int64_t columns, int64_t at) {
  if (columns == 0) return cat("[", at, "]");
  return cat("[", at / columns, ", ", at % columns, "]");
}

Error not_finite(std::string_view name, int64_t columns, int64_t at, float value,
                 const std::string& where) {
  return bad_file(cat("'", printable(name), "' is ", std::isnan(value) ? "NaN" : "infinite", " at ",
                      element(columns, at), "; restore the file, or go on with --allow-nonfinite"),
                  where);
}

int64_t columns_of(const Tensor& tensor) {
  return tensor.layout == Layout::r16 ? tensor.shape[1] : 0;
}

// The index of the first value that is not finite, or -1. Scales are tested at one value per block.
int64_t first_bad(const Tensor& tensor, bool buffer, float& value) {
  if (tensor.layout != Layout::r16) {
    if (tensor.dtype != DType::f32) return -1;  // decoded from rows that were checked
    const int64_t at = first_bad(tensor.f32(), tensor.shape.count(), buffer);
    if (at >= 0) value = tensor.f32()[at];
    return at;
  }
  const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
  const R16 g = r16_geometry(tensor.dtype, rows, cols);
  const int64_t step = r16_scale_step(g), each = step == 1 ? cols : 1;
  std::vector<float> decoded(static_cast<size_t>(each));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += step == 1 ? cols : step) {
      r16_decode(g, tensor.data, r, c, each, decoded.data());
      const int64_t at = first_bad(decoded.data(), each, buffer);
      if (at < 0) continue;
      value = decoded[static_cast<size_t>(at)];
      return r * cols + c + at;
    }
  }
  return -1;
}

// Blocks with scales of 16 bits or less can hold values at least up to this limit.
constexpr float kSmall = 60000;

// A parameter on its way from the source to packing.
struct Watch {
  Network::RowSource rows;
  std::string name, where;
  int64_t columns = 0;  // 0 means a vector
  bool in_memory = false, buffer = false;
  float largest = 0;       // magnitude of values from rows()
  bool read_rows = false;  // packing used rows(), not place()

  int64_t cols() const { return std::max<int64_t>(columns, 1); }
  Status check_rows(int64_t first, int64_t count, float* out);
  Status check_packed(const Tensor& tensor) const;
  Status check_large(const Tensor& tensor) const;
};

Status Watch::check_rows(int64_t first, int64_t count, float* out) {
  LOOM_TRY(rows(first, count, out));
  read_rows = true;
  const uint32_t bits = largest_bits(out, count * cols());
  largest = std::max(largest, std::bit_cast<float>(std::min(bits, kInfinity)));
  if (bits < kInfinity || in_memory) return {};
  const int64_t at = first_bad(out, count * cols(), buffer);
  if (at < 0) return {};
  return not_finite(name, columns, first * cols() + at, out[at], where);
}

Status Watch::check_packed(const Tensor& tensor) const {
  if (columns > 0 && largest > kSmall) return check_large(tensor);
  if (read_rows) return {};  // small values do not overflow
  float value = 0;
  const int64_t at = first_bad(tensor, buffer, value);
  if (at < 0 || in_memory) return {};
  return not_finite(name, columns, at, value, where);
}

// Compares each large value with its packed form: infinite, or the largest of its type.
Status Watch::check_large(const Tensor& tensor) const {
  const R16 g = r16_geometry(tensor.dtype, tensor.shape[0], columns);
  const bool blocks = dtype_info(tensor.dtype).block > 0;  // their scales have few bits
  std::vector<float> before(static_cast<size_t>(columns)), after = before;
  for (int64_t r = 0; r < g.rows; ++r) {
    LOOM_TRY(rows(r, 1, before.data()));
    r16_decode(g, tensor.data, r, 0, columns, after.data());
    for (int64_t c = 0; c < columns; ++c) {
      const float was = std::fabs(before[static_cast<size_t>(c)]);
      const float is = std::fabs(after[static_cast<size_t>(c)]);
      if (!std::isfinite(was) || was <= kSmall) continue;
      const bool lost = blocks && was == largest && is < was / 4;
      if (!std::isfinite(is) || lost)
        return too_large(name, columns, r * columns + c, dtype_name(tensor.dtype), where);
    }
  }
  return {};
}

}  // namespace

Status check_finite(const Tensor& tensor, bool buffer, const std::string& name,
                    const std::string& where) {
  float value = 0;
  const int64_t at = first_bad(tensor, buffer, value);
  return at < 0 ? Status() : not_finite(name, columns_of(tensor), at, value, where);
}

Error too_large(std::string_view name, int64_t columns, int64_t at, std::string_view dtype,
                const std::string& where) {
  return bad_file(
      cat("'", printable(name), "' is too large for ", dtype, " at ", element(columns, at),
          "; choose a type with a larger range, or go on with --allow-nonfinite"),
      where);
}

Result<SourceWeight> finite_weight(const WeightSource& source, const Param& param) {
  LOOM_ASSIGN(SourceWeight weight, source.weight(param));
  if (source.allow_nonfinite) return weight;
  if (weight.tensor.empty()) weight.tensor = param.path;
  auto watch = std::make_shared<Watch>();
  watch->rows = std::move(weight.rows);
  watch->name = weight.tensor;
  watch->where = source.where();
  watch->columns = param.spec.matrix() ? param.spec.shape[1] : 0;
  watch->in_memory = source.in_memory();
  watch->buffer = !param.spec.trained;
  weight.packed = [watch](const Tensor& tensor) { return watch->check_packed(tensor); };
  weight.rows = [watch](int64_t first, int64_t count, float* out) {
    return watch->check_rows(first, count, out);
  };
  return weight;
}

}  // namespace loom::core
