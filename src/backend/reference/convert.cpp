// convert: plain rows between f64, f32, f16 and bf16, each value rounded once to nearest even;
// packed rows to the type of y, f32 or f64. Lanes share the requested rows. Every source value is
// exact in a double, so the intermediate double rounds nothing.
#include <cstring>

#include "backend/reference/kernels.hpp"
#include "dtype/codecs/codec.hpp"

namespace loom::core::reference {
namespace {

double load_value(DType dtype, const std::byte* p) {
  uint64_t code = 0;
  std::memcpy(&code, p, static_cast<size_t>(dtype_info(dtype).bits / 8));
  return decode_value(dtype, code);
}

void store_value(DType dtype, double value, std::byte* p) {
  const uint64_t code = encode_value(dtype, value);
  std::memcpy(p, &code, static_cast<size_t>(dtype_info(dtype).bits / 8));
}

void convert_row(const ConvertArgs& args, int64_t r) {
  const Tensor &x = args.x, &y = args.y;
  const int64_t x_bytes = dtype_info(x.dtype).bits / 8;
  const int64_t y_bytes = dtype_info(y.dtype).bits / 8;
  for (int64_t i = 0; i < x.cols(); ++i) {
    const double value = load_value(x.dtype, x.data + (r * x.row_stride + i) * x_bytes);
    store_value(y.dtype, value, y.data + (r * y.row_stride + i) * y_bytes);
  }
}

void unpack_row(const ConvertArgs& args, int64_t r) {
  const Tensor &x = args.x, &y = args.y;
  const R16 w = r16_geometry(x.dtype, x.shape[0], x.shape[1]);
  if (y.dtype == DType::f64) {
    r16_decode_f64(w, x.data, r, 0, w.cols, y.row<double>(r));
  } else {
    r16_decode(w, x.data, r, 0, w.cols, y.row<float>(r));
  }
}

}  // namespace

template <class T>
void convert(const ConvertArgs& args, const Lane& lane) {
  const bool all = args.rows.empty();
  const LaneRange range = lane.range(all ? args.x.rows() : args.rows.shape.count());
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t row = all ? i : args.rows.i32()[i];
    if (row < 0) continue;
    if (args.x.layout == Layout::r16) {
      unpack_row(args, row);
    } else {
      convert_row(args, row);
    }
  }
}
LOOM_REFERENCE_BODY(convert, ConvertArgs);

}  // namespace loom::core::reference
