#include "api/network/bridge_stream.hpp"

#include <cstring>

#include "base/text.hpp"
#include "dtype/dtype.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/bytes/sha256.hpp"
#include "tensor/tensor.hpp"

namespace loom {
namespace {

using core::cat;
using core::JsonValue;

constexpr size_t kStreamAlignment = 64, kStreamTrailer = 32;
constexpr uint64_t kMaxManifest = uint64_t{16} << 20;

size_t aligned_end(size_t bytes) {
  return (bytes + kStreamAlignment - 1) / kStreamAlignment * kStreamAlignment;
}

}  // namespace

Error BridgeReader::bad(std::string message) const {
  return Error{Code::bad_file, std::move(message), where_, -1};
}

Result<BridgeReader> BridgeReader::open(std::span<const std::byte> stream, std::string_view schema,
                                        std::string where) {
  BridgeReader out;
  out.where_ = std::move(where);
  core::ByteReader reader(stream, out.where_);
  LOOM_ASSIGN(const uint64_t length, reader.u64("length of the manifest"));
  if (length > kMaxManifest)
    return out.bad("is not a stream; give what loom.bridge.stream() of Python writes");
  LOOM_ASSIGN(const auto json, reader.take(length, "the manifest"));
  const size_t begin = aligned_end(8 + json.size());
  if (stream.size() < kStreamTrailer || stream.size() - kStreamTrailer < begin)
    return out.bad("the stream ends before its payload and its hash");
  const size_t end = stream.size() - kStreamTrailer;
  if (core::sha256_of(stream.first(end)) != core::hex_text(stream.subspan(end)))
    return out.bad("the stream is damaged or cut short: its SHA-256 differs; send it again");
  out.payload_ = stream.subspan(begin, end - begin);
  const std::string_view manifest(reinterpret_cast<const char*>(json.data()), json.size());
  LOOM_ASSIGN(out.manifest_, core::parse_json(manifest, cat(out.where_, ": manifest")));
  LOOM_ASSIGN(const std::string found, out.text(out.manifest_, "schema"));
  if (found == schema) return out;
  return Error{Code::unsupported, cat("schema '", found, "'; this program reads ", schema),
               out.where_, -1};
}

Result<const JsonValue*> BridgeReader::member(const JsonValue& of, std::string_view key) const {
  const JsonValue* found = of.find(key);
  if (found == nullptr) return bad(cat("the manifest has no '", key, "' where one belongs"));
  return found;
}

Result<std::string> BridgeReader::text(const JsonValue& of, std::string_view key) const {
  LOOM_ASSIGN(const JsonValue* found, member(of, key));
  return found->as_string(cat(where_, ": ", key));
}

Result<int64_t> BridgeReader::number(const JsonValue& of, std::string_view key) const {
  LOOM_ASSIGN(const JsonValue* found, member(of, key));
  return found->as_int(cat(where_, ": ", key));
}

Result<std::span<const std::byte>> BridgeReader::stored(const JsonValue& of,
                                                        std::string_view what) const {
  LOOM_ASSIGN(const JsonValue* store, member(of, "store"));
  LOOM_ASSIGN(const int64_t offset, number(*store, "offset"));
  LOOM_ASSIGN(const int64_t length, number(*store, "length"));
  const auto size = static_cast<int64_t>(payload_.size());
  if (offset < 0 || length < 0 || offset > size || length > size - offset)
    return bad(cat(what, " is at ", offset, " with ", length, " bytes, of a payload of ", size));
  const auto bytes = payload_.subspan(static_cast<size_t>(offset), static_cast<size_t>(length));
  LOOM_ASSIGN(const std::string hash, text(of, "sha256"));
  if (core::sha256_of(bytes) != hash) return bad(cat(what, " is damaged: its SHA-256 differs"));
  return bytes;
}

Result<Tensor> BridgeReader::tensor(const JsonValue& described, std::string_view what) const {
  LOOM_ASSIGN(const std::string name, text(described, "dtype"));
  LOOM_ASSIGN(const DType dtype, parse_dtype(name));
  LOOM_ASSIGN(const JsonValue* axes, member(described, "shape"));
  Shape shape;
  for (const JsonValue& axis : axes->elements()) {
    LOOM_ASSIGN(shape.emplace_back(), axis.as_int(cat(where_, ": shape of ", what)));
  }
  LOOM_ASSIGN(const auto bytes, stored(described, what));
  const int64_t count = element_count(shape);
  const int64_t each = dtype_bits(dtype) / 8;
  const bool fits =
      count >= 0 && each > 0 && std::ssize(bytes) % each == 0 && std::ssize(bytes) / each == count;
  if (!fits)
    return bad(cat(what, " is ", name, " ", shape_text(shape), " in ", bytes.size(), " bytes"));
  LOOM_TRY(Tensor::zeros({0}, dtype));  // no type with scales
  // In separate memory, which is aligned; the payload may not be.
  LOOM_ASSIGN(core::Buffer buffer, core::Buffer::allocate(std::max<int64_t>(1, std::ssize(bytes))));
  const auto memory = std::make_shared<const core::Buffer>(std::move(buffer));
  if (!bytes.empty()) std::memcpy(memory->data(), bytes.data(), bytes.size());
  return Tensor::borrow(memory->data(), dtype, std::move(shape), {}, memory);
}

Result<std::vector<Tensor>> BridgeReader::tensors(const JsonValue& of, std::string_view key) const {
  LOOM_ASSIGN(const JsonValue* listed, member(of, key));
  std::vector<Tensor> out;
  for (const JsonValue& each : listed->elements()) {
    LOOM_ASSIGN(out.emplace_back(), tensor(each, cat(key, " ", out.size())));
  }
  if (out.empty()) return bad(cat("'", key, "' has no array"));
  return out;
}

void BridgeWriter::add(std::string_view piece, JsonValue& described) {
  payload_.resize(aligned_end(payload_.size()));
  JsonValue store = JsonValue::object();
  store.add("offset", JsonValue::integer(static_cast<int64_t>(payload_.size())));
  store.add("length", JsonValue::integer(static_cast<int64_t>(piece.size())));
  described.add("store", std::move(store));
  described.add("sha256", JsonValue::string(core::sha256_of(std::as_bytes(std::span(piece)))));
  payload_ += piece;
}

JsonValue BridgeWriter::add(const Tensor& tensor) {
  JsonValue shape = JsonValue::array();
  for (const int64_t extent : tensor.shape()) shape.push(JsonValue::integer(extent));
  JsonValue out = JsonValue::object();
  out.add("dtype", JsonValue::string(std::string(dtype_name(tensor.dtype()))));
  out.add("shape", std::move(shape));
  add({reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())}, out);
  return out;
}

std::string BridgeWriter::sealed(const JsonValue& manifest) const {
  const std::string text = core::dump_json(manifest);
  std::string out;
  for (uint64_t rest = text.size(); out.size() < 8; rest >>= 8) out += static_cast<char>(rest);
  out += text;
  out.resize(aligned_end(out.size()));
  out += payload_;
  const std::string hash = core::sha256_of(std::as_bytes(std::span(out)));
  for (size_t i = 0; i < hash.size(); i += 2)
    out += static_cast<char>(std::stoi(hash.substr(i, 2), nullptr, 16));
  return out;
}

}  // namespace loom
