// Tensors of ONNX files: see read.hpp. A tensor holds exactly the values of its shape, in one
// place.
#include <algorithm>
#include <cstring>

#include "base/numbers/bits.hpp"
#include "base/numbers/checked.hpp"
#include "onnx/file/read.hpp"

namespace loom::core {
namespace {

template <class T, class From>
std::vector<std::byte> packed(const std::vector<From>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T v = static_cast<T>(values[i]);
    std::memcpy(out.data() + i * sizeof(T), &v, sizeof(T));
  }
  return out;
}

// Values of int32_data must fit the type they stand for; f16 and bf16 are stored as their bits.
template <class T>
bool narrow(const std::vector<int64_t>& values, std::vector<std::byte>& out) {
  const auto fits = [](int64_t v) { return static_cast<int64_t>(static_cast<T>(v)) == v; };
  if (!std::all_of(values.begin(), values.end(), fits)) return false;
  out = packed<T>(values);
  return true;
}

bool narrow_to(OnnxType type, const std::vector<int64_t>& values, std::vector<std::byte>& out) {
  switch (type) {
    case OnnxType::i32: return narrow<int32_t>(values, out);
    case OnnxType::i16: return narrow<int16_t>(values, out);
    case OnnxType::i8: return narrow<int8_t>(values, out);
    default:
      return onnx_type_bits(type) == 16 ? narrow<uint16_t>(values, out)
                                        : narrow<uint8_t>(values, out);
  }
}

// The number of values in the typed field of this type, all other fields being empty; or -1.
int64_t typed_count(OnnxType type, const TensorFields& f) {
  const size_t all =
      f.floats.size() + f.doubles.size() + f.ints32.size() + f.ints64.size() + f.uints64.size();
  size_t mine = f.ints32.size();
  if (type == OnnxType::f32) mine = f.floats.size();
  if (type == OnnxType::f64) mine = f.doubles.size();
  if (type == OnnxType::i64) mine = f.ints64.size();
  if (type == OnnxType::u32 || type == OnnxType::u64) mine = f.uints64.size();
  return mine == all ? static_cast<int64_t>(mine) : -1;
}

bool store(const TensorFields& f, OnnxTensor& t) {
  switch (t.type) {
    case OnnxType::f32: t.own = packed<float>(f.floats); return true;
    case OnnxType::f64: t.own = packed<double>(f.doubles); return true;
    case OnnxType::i64: t.own = packed<int64_t>(f.ints64); return true;
    case OnnxType::u64: t.own = packed<uint64_t>(f.uints64); return true;
    case OnnxType::u32: return narrow<uint32_t>(f.uints64, t.own);
    default: return narrow_to(t.type, f.ints32, t.own);
  }
}

}  // namespace

Status OnnxReader::set_values(const ProtoReader& in, const TensorFields& f, bool has_raw,
                              OnnxTensor& t) const {
  const std::string who = cat("tensor '", printable(t.name), "'");
  if (f.external && folder_.empty())
    return not_known(cat(who,
                         " keeps its data in another file; Loom opens no path from a "
                         "model: save the model with its data inside"));
  const int bits = onnx_type_bits(t.type);
  if (bits == 0 || (!everything() && onnx_type_bytes(t.type) == 0))
    return not_known(cat(who, ": data type ", static_cast<int32_t>(t.type), " is not read"));
  uint64_t count = 1, bytes = 0;
  for (const int64_t extent : t.shape) {
    if (extent < 0) return in.error(cat(who, ": a dimension of ", extent));
    if (!checked_mul(count, static_cast<uint64_t>(extent), count) || count > kMaxOnnxFile)
      return in.error(cat(who, ": its shape has more than ", kMaxOnnxFile, " values"));
  }
  if (!checked_mul(count, static_cast<uint64_t>(bits), bytes))
    return in.error(cat(who, ": too large"));
  bytes = (bytes + 7) / 8;
  if (f.external) {
    Result<std::vector<std::byte>> data = read_external(f.outside, folder_, bytes);
    if (!data.ok()) {
      Error error = data.error();
      const std::string location = error.where.empty() ? std::string() : cat(error.where, ": ");
      return make_error(error.code, cat(who, ": ", location, error.message), where_);
    }
    t.own = std::move(*data);
    return {};
  }
  const int64_t typed = typed_count(t.type, f);
  if (typed < 0 || (has_raw && typed > 0))
    return in.error(cat(who, ": values are in more than one field, or not in that of ",
                        onnx_type_name(t.type)));
  if (has_raw) {
    if (f.raw.size() != bytes)
      return in.error(cat(who, ": raw_data has ", f.raw.size(), " bytes, its shape needs ", bytes));
    t.raw = f.raw;
    return {};
  }
  const uint64_t fields = bits < 8 ? bytes : count;  // narrow values share a number
  if (static_cast<uint64_t>(typed) != fields)
    return in.error(cat(who, ": has ", typed, " values, its shape needs ", fields));
  if (!store(f, t)) return in.error(cat(who, ": a value does not fit ", onnx_type_name(t.type)));
  return {};
}

Result<OnnxTensor> OnnxReader::tensor(ProtoReader in) {
  OnnxTensor t;
  t.type = OnnxType::undefined;
  TensorFields values;
  ReadOnce once;
  while (!in.done()) {
    LOOM_ASSIGN(const ProtoField f, in.next());
    switch (f.number) {
      case 1: LOOM_TRY(in.integers(f, "dims", kMaxOnnxRank, t.shape)); break;
      case 2: {
        LOOM_TRY(once.check(in, f, "data_type"));
        LOOM_ASSIGN(const int64_t type, in.integer(f, "data_type"));
        if (type < 0 || type > 1000) return in.error(f, "data_type", cat(type, " is not a type"));
        t.type = static_cast<OnnxType>(type);
        break;
      }
      case 3: return in.error(f, "segment", "tensors in pieces are not read");
      case 4: LOOM_TRY(in.floats(f, "float_data", kMaxOnnxValues, values.floats)); break;
      case 5: LOOM_TRY(in.integers(f, "int32_data", kMaxOnnxValues, values.ints32)); break;
      case 6: return in.error(f, "string_data", "tensors of strings are not read");
      case 7: LOOM_TRY(in.integers(f, "int64_data", kMaxOnnxValues, values.ints64)); break;
      case 8: {
        LOOM_TRY(once.check(in, f, "name"));
        LOOM_ASSIGN(t.name, in.text(f, "name"));
        break;
      }
      case 9: {
        LOOM_TRY(once.check(in, f, "raw_data"));
        LOOM_ASSIGN(values.raw, in.bytes(f, "raw_data"));
        break;
      }
      case 10: LOOM_TRY(in.doubles(f, "double_data", kMaxOnnxValues, values.doubles)); break;
      case 11: LOOM_TRY(in.integers(f, "uint64_data", kMaxOnnxValues, values.uints64)); break;
      case 13: {
        values.external = true;
        LOOM_ASSIGN(ProtoReader entry, in.enter(f, "external_data"));
        LOOM_ASSIGN(const auto known, pair(entry));
        const Status added = add_external(known.first, known.second, values.outside);
        if (!added.ok() && !folder_.empty())
          return in.error(f, "external_data", added.error().message);
        break;
      }
      case 14: {
        LOOM_TRY(once.check(in, f, "data_location"));
        LOOM_ASSIGN(const int64_t location, in.integer(f, "data_location"));
        values.external = values.external || location != 0;
        break;
      }
      default: break;
    }
  }
  LOOM_TRY(set_values(in, values, once.has(9), t));
  return t;
}

}  // namespace loom::core
