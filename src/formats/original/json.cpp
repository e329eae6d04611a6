// JSON files of the original: checkpoints with weights as Base64, and architectures without; see
// original.hpp. Which of the two a file is shows in its keys.
#include "base/text.hpp"
#include "dtype/codecs/loom1_codes.hpp"
#include "formats/original/reader.hpp"
#include "io/bytes/base64.hpp"

namespace loom::core {
namespace {

// How the bytes of a layer's weights are to be read.
struct Stored {
  DType dtype = DType::f32;
  uint64_t bytes = 0;
};

Result<Stored> stored_as(const Loom1Reader& reader, const Loom1Layer& layer, uint64_t count,
                         uint64_t size) {
  Stored s;
  s.dtype = layer.record.native ? layer.dtype : DType::f32;
  s.bytes = loom1_bytes(s.dtype, count);
  const bool half = layer.record.native && dtype_info(s.dtype).bits == 16 &&
                    !loom1_scaled(s.dtype) && size == 4 * count;
  if (half) return Stored{DType::f32, size};  // what version 0.74 wrote for 16-bit floats
  if (s.bytes == size) return s;
  return reader.bad(layer, cat("weights: ", count, " values of ", dtype_name(s.dtype), " take ",
                               s.bytes, " bytes, found ", size));
}

Result<bool> json_weights(Loom1Reader& reader, const Loom1Layer& layer,
                          const std::vector<ParamSpec>& specs, std::vector<float>& out) {
  const Loom1Record& r = layer.record;
  LOOM_ASSIGN(const uint64_t count, loom1_count(reader, layer, specs));
  if (r.weights == nullptr || r.weights->text().empty()) {
    if (r.native && count > 0) return reader.bad(layer, "native weights, but none in the file");
    return false;
  }
  const std::string& text = r.weights->text();
  // Before anything is allocated for the values.
  if (base64_max_bytes(text.size()) < loom1_bytes(r.native ? layer.dtype : DType::f32, count)) {
    return reader.bad(layer, cat("weights: ", text.size(), " characters of Base64 are too few for ",
                                 count, " values"));
  }
  const Result<std::string> bytes = decode_base64(text);
  if (!bytes.ok())
    return reader.bad(*r.weights, layer.location + ".weights", bytes.error().message);
  LOOM_ASSIGN(const Stored stored, stored_as(reader, layer, count, bytes->size()));
  const bool scaled = r.native && loom1_scaled(stored.dtype);
  if (scaled && !(r.scale > 0))
    return reader.bad(layer, cat("native ", dtype_name(stored.dtype), " weights need a scale"));
  if (scaled && r.scale == 1.0) {
    reader.note(layer.location,
                "scale is 1.0, which the original also writes when it had not computed one: then "
                "all weights are too large by one factor, which the file does not tell");
  }
  if (r.native && stored.dtype != layer.dtype)
    reader.note(layer.location, cat(dtype_name(layer.dtype), " weights are stored as float32"));
  out.resize(count);
  loom1_unpack(stored.dtype, std::as_bytes(std::span(*bytes)), r.scale, out);
  return true;
}

}  // namespace

Result<Loom1Network> parse_loom1_json(std::string_view text, const std::string& where,
                                      const Loom1Options& options) {
  LOOM_ASSIGN(const JsonValue root, parse_json(text, where));
  Loom1Reader reader(where, 0);
  LOOM_ASSIGN(Loom1Grid grid, reader.grid(root));
  size_t without = 0;
  const auto weights = [&](const Loom1Layer& layer, const std::vector<ParamSpec>& specs,
                           std::vector<float>& out) -> Result<bool> {
    LOOM_ASSIGN(const bool there, json_weights(reader, layer, specs, out));
    if (!there && !specs.empty() && !layer.config.disabled) ++without;
    return there;
  };
  LOOM_ASSIGN(Loom1Network made, build_loom1(reader, grid, options, weights));
  if (without > 0 && !made.params.empty())
    return bad_file(cat(without, " layers have no weights, the others do"), where);
  if (without > 0) made.notes.emplace_back("layers: no weights in the file, an architecture");
  return made;
}

}  // namespace loom::core
