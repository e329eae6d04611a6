// The writer of .entity files. The header holds the hash of every blob. So it is written twice: as
// a placeholder of its final size, and again after all blobs.
#include <array>
#include <cstring>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "io/bytes/hash.hpp"
#include "io/bytes/utf8.hpp"
#include "io/weights/entity.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kNoHash = "00000000000000000000000000000000";

JsonValue text(std::string_view value) {
  return JsonValue::string(std::string(value));
}

struct Planned {
  uint64_t offset = 0, length = 0;  // offset within the payload
  std::string hash{kNoHash};
};

uint64_t blob_length(const EntityOutput& blob) {
  if (blob.layout == BlobLayout::r16)
    return static_cast<uint64_t>(r16_geometry(blob.dtype, blob.shape[0], blob.shape[1]).bytes());
  return static_cast<uint64_t>(plain_bytes(blob.dtype, blob.shape));
}

std::string header_text(const JsonValue& sections, const std::vector<EntityOutput>& blobs,
                        const std::vector<Planned>& plan) {
  JsonValue header = JsonValue::object();
  header.add("entity", JsonValue::integer(kEntityVersion));
  for (const auto& [key, value] : sections.members()) header.add(key, value);
  JsonValue list = JsonValue::array();
  for (size_t i = 0; i < blobs.size(); ++i) {
    JsonValue item = JsonValue::object();
    item.add("path", text(blobs[i].path));
    item.add("layout", text(blob_layout_name(blobs[i].layout)));
    if (blobs[i].layout != BlobLayout::text) item.add("dtype", text(dtype_name(blobs[i].dtype)));
    JsonValue shape = JsonValue::array();
    for (int axis = 0; axis < blobs[i].shape.rank(); ++axis)
      shape.push(JsonValue::integer(blobs[i].shape[axis]));
    item.add("shape", std::move(shape));
    item.add("offset", JsonValue::integer(static_cast<int64_t>(plan[i].offset)));
    item.add("length", JsonValue::integer(static_cast<int64_t>(plan[i].length)));
    item.add("hash", text(plan[i].hash));
    list.push(std::move(item));
  }
  header.add("blobs", std::move(list));
  std::string out = dump_json(header);
  out.resize(static_cast<size_t>(round_up(static_cast<int64_t>(out.size()), kEntityAlign)), ' ');
  return out;
}

// See docs/entity.md.
std::array<std::byte, kEntityFixed> fixed_part(const std::string& header, uint64_t file_length) {
  std::array<std::byte, kEntityFixed> fixed{};
  const auto put = [&](size_t at, auto value) {
    std::memcpy(fixed.data() + at, &value, sizeof value);
  };
  std::memcpy(fixed.data(), "ENTITY\0\0", 8);
  put(8, kEntityVersion);
  put(10, uint16_t{1});  // hashes are present
  put(12, uint64_t{header.size()});
  put(24, file_length);
  put(32, hash64(std::as_bytes(std::span(header))));
  put(56, hash64(std::span(fixed).first(56)));
  return fixed;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Checks the inputs of size computations. The reader checks the rest: see check_header().
Status check(const std::vector<EntityOutput>& blobs) {
  for (size_t i = 0; i < blobs.size(); ++i) {
    if (blobs[i].path.empty() || blobs[i].path.size() > kMaxEntityPath)
      return invalid(cat("a blob's path must have 1 to ", kMaxEntityPath, " bytes"),
                     printable(blobs[i].path));
    if (!is_utf8(blobs[i].path))
      return invalid("a blob's path must be UTF-8", printable(blobs[i].path));
    if (!entity_shape_fits(blobs[i].shape))
      return invalid("the shape is too large, or below zero", blobs[i].path);
    if (blobs[i].layout == BlobLayout::r16 && blobs[i].shape.rank() != 2)
      return invalid("the layout r16 is for matrices", blobs[i].path);
  }
  if (blobs.size() > kMaxEntityBlobs) return invalid(cat("more than ", kMaxEntityBlobs, " blobs"));
  return {};
}

}  // namespace

EntityOutput tensor_output(std::string path, const Tensor& tensor) {
  EntityOutput out;
  out.path = std::move(path);
  out.layout = tensor.layout == Layout::r16 ? BlobLayout::r16 : BlobLayout::plain;
  out.dtype = tensor.dtype;
  out.shape = tensor.shape;
  const uint64_t length = blob_length(out);
  out.data = [tensor, length]() -> Result<std::span<const std::byte>> {
    return std::span<const std::byte>(tensor.data, static_cast<size_t>(length));
  };
  return out;
}

EntityOutput text_output(std::string path, std::string value) {
  EntityOutput out;
  out.path = std::move(path);
  out.layout = BlobLayout::text;
  out.dtype = DType::u8;
  out.shape = Shape{static_cast<int64_t>(value.size())};
  out.data = [value = std::move(value)]() -> Result<std::span<const std::byte>> {
    return std::as_bytes(std::span(value));
  };
  return out;
}

Status write_entity(const FileRef& path, const JsonValue& sections,
                    const std::vector<EntityOutput>& blobs, const EntityProgress& progress,
                    const std::string& keep) {
  if (!sections.is_object()) return invalid("the sections of a header are an object", path);
  LOOM_TRY(check(blobs));
  std::vector<Planned> plan(blobs.size());
  uint64_t end = 0;
  for (size_t i = 0; i < blobs.size(); ++i) {
    plan[i].offset = end;
    plan[i].length = blob_length(blobs[i]);
    end += static_cast<uint64_t>(round_up(static_cast<int64_t>(plan[i].length), kEntityAlign));
  }
  std::string header = header_text(sections, blobs, plan);
  if (header.size() > kMaxEntityHeader) return invalid("a header of more than 100 MB", path);
  const uint64_t payload = kEntityFixed + header.size();
  const Status readable = Entity::check_header(header, payload + end, path);
  if (!readable.ok()) return invalid(readable.error().message, path);
  LOOM_ASSIGN(AtomicFile file, AtomicFile::create(path));
  LOOM_TRY(file.write(fixed_part(header, payload + end)));
  LOOM_TRY(file.write(header));
  constexpr std::array<std::byte, kEntityAlign> kZeros{};
  for (size_t i = 0; i < blobs.size(); ++i) {
    LOOM_ASSIGN(const std::span<const std::byte> data, blobs[i].data());
    if (data.size() != plan[i].length) {
      return make_error(Code::internal,
                        cat("has ", data.size(), " bytes, its shape needs ", plan[i].length),
                        blobs[i].path);
    }
    const auto padding =
        std::span(kZeros).first((kEntityAlign - data.size() % kEntityAlign) % kEntityAlign);
    BytesHash hash;
    hash.add(data);
    hash.add(padding);
    plan[i].hash = hash.hex();
    LOOM_TRY(file.write(data));
    LOOM_TRY(file.write(padding));
    if (progress.report && !progress.report(file.size() - payload, end))
      return make_error(Code::cancelled, "saving was stopped");
  }
  header = header_text(sections, blobs, plan);
  LOOM_TRY(file.rewrite(0, fixed_part(header, payload + end)));
  LOOM_TRY(file.rewrite(kEntityFixed, std::as_bytes(std::span(header))));
  return file.commit(keep);
}

}  // namespace loom::core
