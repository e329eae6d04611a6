// Any bytes as an .entity file. It is refused in one line, or its blobs, values, sections and
// network can all be used. A small network also runs one forward pass of the reference backend.
// Hashes would stop blind mutation at once, so inputs come in two forms, and the target corrects
// the hashes:
//   a file (it begins with ENTITY)   parsed unchanged, and once more with correct hashes;
//   HEADER \0 PAYLOAD                framed as a file; the hash of every blob inside is written
//                                    into the header.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "backend/reference/reference.hpp"
#include "base/threads/thread_pool.hpp"
#include "bridge/entity_network.hpp"
#include "check.hpp"
#include "grid/session.hpp"
#include "io/bytes/hash.hpp"

namespace {

using loom::core::Buffer;
using loom::core::Entity;
using loom::core::JsonValue;

constexpr int64_t kSmall = 4096;  // values between two cells of a network that is run

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

void put(std::string& file, size_t at, uint64_t value, size_t bytes) {
  std::memcpy(file.data() + at, &value, bytes);
}
uint64_t header_length(std::string_view file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data() + 12, 8);
  return length;
}

// The hashes of the fixed part and the header.
void seal(std::string& file) {
  const uint64_t length = header_length(file);
  if (length <= file.size() - 64)
    put(file, 32, loom::core::hash64(bytes_of(std::string_view(file).substr(64, length))), 8);
  put(file, 56, loom::core::hash64(bytes_of(std::string_view(file).substr(0, 56))), 8);
}

// The hash of one blob, if its item describes bytes of the payload.
void hash_blob(std::string& file, size_t payload, const JsonValue& item) {
  const JsonValue *offset = item.find("offset"), *length = item.find("length"),
                  *hash = item.find("hash");
  if (offset == nullptr || length == nullptr || hash == nullptr || hash->text().size() != 32)
    return;
  const auto at = offset->as_int(""), size = length->as_int("");
  const auto left = static_cast<int64_t>(file.size() - payload);
  if (!at.ok() || !size.ok() || *at < 0 || *size < 0 || *at > left || *size > left - *at) return;
  const size_t padded = (static_cast<size_t>(*size) + 63) / 64 * 64;
  const std::string_view all = std::string_view(file).substr(payload + static_cast<size_t>(*at));
  const std::string hex = loom::core::hash_hex(bytes_of(all.substr(0, padded)));
  const size_t text = 64 + static_cast<size_t>(hash->offset()) + 1;
  if (file[text + 32] == '"') file.replace(text, 32, hex);
}

std::string framed(std::string_view input) {
  const size_t end = std::min(input.find('\0'), input.size());
  std::string header(input.substr(0, end));
  header.resize((header.size() + 63) / 64 * 64, ' ');
  std::string file = std::string("ENTITY\0\0\2\0\1\0", 12) + std::string(52, '\0') + header;
  put(file, 12, header.size(), 8);
  file += input.substr(std::min(end + 1, input.size()));
  file.resize((file.size() + 63) / 64 * 64, '\0');
  put(file, 24, file.size(), 8);
  const auto json = loom::core::parse_json(header, "f");
  const JsonValue* blobs = json.ok() ? json->find("blobs") : nullptr;
  if (blobs != nullptr) {
    for (const JsonValue& item : blobs->elements()) hash_blob(file, 64 + header.size(), item);
  }
  seal(file);
  return file;
}

void check_error(const loom::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.str().find('\n') == std::string::npos);
}

void run_network(const loom::core::Network& network) {
  for (const loom::core::GridNode& cell : network.cells()) {
    if (cell.in.count() > kSmall || cell.out.count() > kSmall || !cell.node.children.empty())
      return;
  }
  loom::core::ThreadPool alone(1);
  auto session =
      loom::core::Session::create(network, loom::core::reference_ops(), alone, network.input(), {});
  if (!session.ok()) return check_error(session.error());
  std::vector<int32_t> zeros(static_cast<size_t>(network.input().count()));  // ids, or 0.0f
  loom::core::Tensor x;
  x.dtype = network.vocab() > 0 ? loom::core::DType::i32 : loom::core::DType::f32;
  x.shape = network.input();
  x.row_stride = x.shape.last();
  x.data = reinterpret_cast<std::byte*>(zeros.data());
  const auto y = session->forward(x, 0, network.cells().size());
  if (!y.ok()) check_error(y.error());
}

void use_blobs(const Entity& file, size_t size) {
  std::vector<float> values(256);
  uint64_t next = 0;
  for (size_t i = 0; i < file.blobs().size(); ++i) {
    const loom::core::EntityBlob& blob = file.blobs()[i];
    CHECK(blob.offset % 64 == 0 && blob.offset >= next && blob.length <= size - blob.offset);
    next = blob.offset + blob.length;
    CHECK(file.find(blob.path) == static_cast<int64_t>(i));
    if (!file.verify(i).ok()) continue;
    if (blob.layout == loom::core::BlobLayout::text) CHECK(file.text(blob.path).ok());
    const int64_t count = file.entries()[i].count();
    for (int64_t at = 0; at < count; at += 256) {
      const int64_t chunk = std::min<int64_t>(256, count - at);
      if (!file.to_f32(i, at, chunk, values.data()).ok()) break;
    }
  }
}

void use(std::string_view bytes) {
  auto memory = Buffer::allocate(static_cast<int64_t>(bytes.size()));
  CHECK(memory.ok());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(memory->data()));
  auto file = Entity::parse({memory->data(), bytes.size()}, "f");
  if (!file.ok()) return check_error(file.error());
  use_blobs(**file, bytes.size());
  const std::shared_ptr<const Entity> shared = std::move(*file);
  const loom::Status sections = check_sections(*shared);
  if (!sections.ok()) check_error(sections.error());
  const auto mapped = map_network(shared, 1);
  if (!mapped.ok()) return check_error(mapped.error());
  run_network(mapped->network);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (!input.starts_with("ENTITY")) {
    use(framed(input));
    return 0;
  }
  use(input);
  if (size < 64) return 0;
  std::string file(input);
  seal(file);
  use(file);
  return 0;
}
