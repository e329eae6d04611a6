// See ternary.hpp. Both forms give values on the grid -g, 0, g, which ternary packing keeps
// exactly.
#include "formats/hf/ternary.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int64_t kCodesPerByte = 4;  // codes in a byte
constexpr int64_t kValuesAtATime = 1 << 20;
constexpr float kSmallestMean = 1e-5f;
constexpr float kLargest = 3.40282347e38f;

}  // namespace

std::string ternary_scale_name(const std::string& name) {
  return name + "_scale";
}

Result<TernaryMatrix> TernaryMatrix::open(const SafeTensor& codes, const SafeTensor& scale,
                                          const Shape& shape, TernaryWeights kind,
                                          const std::string& where) {
  const auto offset = [](const SafeTensor& t) { return static_cast<int64_t>(t.file_offset); };
  TernaryMatrix m;
  m.rows_ = shape[0];
  m.cols_ = shape[1];
  m.codes_ = codes.data;
  m.name_ = codes.name;
  m.where_ = where;
  const bool fits = codes.shape.size() == 2 && m.rows_ % kCodesPerByte == 0 &&
                    codes.shape[0] == m.rows_ / kCodesPerByte && codes.shape[1] == m.cols_ &&
                    static_cast<int64_t>(codes.data.size()) == m.rows_ / kCodesPerByte * m.cols_;
  if (codes.dtype != SafeDType::u8 || !fits) {
    return bad_file(cat(codes.name, " does not hold the codes of ", shape.str(),
                        ": expected U8 of a quarter of the rows"),
                    where, offset(codes));
  }
  if (scale.count() != 1) {
    return bad_file(cat(scale.name, " has ", scale.count(), " values; expected one"), where,
                    offset(scale));
  }
  float value = 0;
  LOOM_TRY(SafeTensors::to_f32(scale, 0, 1, &value));
  m.value_ = kind == TernaryWeights::divided ? 1.0f / value : value;
  if (!(value > 0) || !(m.value_ > 0) || !(m.value_ <= kLargest)) {
    return bad_file(cat(scale.name, " is not a positive number"), where, offset(scale));
  }
  return m;
}

Status TernaryMatrix::rows(int64_t first, int64_t count, float* out) const {
  const float values[3] = {-value_, 0.0f, value_};
  const int64_t quarter = rows_ / kCodesPerByte;
  for (int64_t r = first; r < first + count; ++r) {
    const auto bytes =
        codes_.subspan(static_cast<size_t>(r % quarter * cols_), static_cast<size_t>(cols_));
    const auto shift = static_cast<int>(2 * (r / quarter));
    for (const std::byte byte : bytes) {
      const int code = static_cast<int>(byte) >> shift & 3;
      if (code == 3)
        return bad_file(cat(name_, " has code 3 in row ", r, ": codes are 0, 1, 2"), where_);
      *out++ = values[code];
    }
  }
  return {};
}

Result<float> mean_magnitude(const Network::RowSource& rows, const Shape& shape) {
  const int64_t step = std::max<int64_t>(1, kValuesAtATime / std::max<int64_t>(shape[1], 1));
  std::vector<float> values(static_cast<size_t>(std::min(step, shape[0]) * shape[1]));
  double sum = 0;
  for (int64_t row = 0; row < shape[0]; row += step) {
    const int64_t count = std::min(step, shape[0] - row);
    LOOM_TRY(rows(row, count, values.data()));
    for (int64_t i = 0; i < count * shape[1]; ++i) {
      const auto v = static_cast<double>(values[static_cast<size_t>(i)]);
      sum += v < 0 ? -v : v;
    }
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(shape.count()));
  return mean > kSmallestMean ? mean : kSmallestMean;
}

void to_ternary(float mean, int64_t count, float* values) {
  // Rounding to even gives 0 for 0.5, so larger values have their own code.
  const float scale = 1.0f / mean;
  for (int64_t i = 0; i < count; ++i) {
    const float x = values[i] * scale;
    values[i] = x > 0.5f ? mean : x < -0.5f ? -mean : 0.0f;
  }
}

}  // namespace loom::core
