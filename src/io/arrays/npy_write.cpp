// See npy_write.hpp. A member is its local header, the NPY header and the data; the directory at
// the end repeats the local headers.
#include "io/arrays/npy_write.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "base/text.hpp"
#include "io/bytes/deflate.hpp"
#include "io/files/file.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kMaxZip = UINT32_MAX - 1;
constexpr size_t kMaxMembers = UINT16_MAX - 1, kMaxName = 1024;
constexpr uint16_t kZipVersion = 20, kUtf8Names = 0x0800, kFirstDay = 0x0021;  // 1980-01-01

// In the order of ElementType; "" means that NumPy has no such type.
constexpr std::string_view kDescr[] = {"|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4",
                                       "<u8", "<i8", "<f2", "",    "<f4", "<f8"};

void put(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 255);
}

Result<std::span<const std::byte>> data_of(const NpyOutput& array) {
  if (array.produce) return array.produce();
  return array.data;
}

// Magic, version, length and the dict literal, padded so that the data starts at a multiple of 64.
Result<std::string> npy_header(const NpyOutput& array, size_t bytes) {
  const std::string_view descr = kDescr[static_cast<size_t>(array.type)];
  if (descr.empty()) {
    return unsupported("NumPy has no bf16; convert the array to f32 first", array.name);
  }
  const auto size = array_bytes(array.shape, array.type);
  const bool negative = std::any_of(array.shape.begin(), array.shape.end(),
                                    [](int64_t extent) { return extent < 0; });
  if (negative || !size.has_value() || *size != bytes) {
    return invalid(cat("has ", bytes, " bytes, which do not fit its shape"), array.name);
  }
  std::string dict = cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (");
  for (size_t i = 0; i < array.shape.size(); ++i) {
    dict += cat(i > 0 ? " " : "", array.shape[i], i + 1 < array.shape.size() ? "," : "");
  }
  dict += array.shape.size() == 1 ? ",), }" : "), }";
  const size_t fixed = 10;
  dict.append((64 - (fixed + dict.size() + 1) % 64) % 64, ' ');
  dict += '\n';
  std::string header = "\x93NUMPY";
  put(header, 1, 2);
  if (dict.size() > UINT16_MAX) return invalid("has too many axes", array.name);
  put(header, dict.size(), 2);
  return header + dict;
}

struct Member {
  std::string name;
  uint32_t crc = 0;
  uint64_t size = 0, at = 0;
};

// Common fields of the local header and the directory, from "version needed" to the name's length.
void put_common(std::string& to, const Member& m) {
  put(to, kZipVersion, 2);
  put(to, kUtf8Names, 2);
  put(to, 0, 2);  // stored
  put(to, 0, 2);  // midnight
  put(to, kFirstDay, 2);
  put(to, m.crc, 4);
  put(to, m.size, 4);
  put(to, m.size, 4);
  put(to, m.name.size(), 2);
  put(to, 0, 2);  // no extra field
}

std::string local_header(const Member& m) {
  std::string out("PK\x03\x04", 4);
  put_common(out, m);
  return out + m.name;
}

std::string directory(const std::vector<Member>& members, uint64_t at) {
  std::string out;
  for (const Member& m : members) {
    out.append("PK\x01\x02", 4);
    put(out, kZipVersion, 2);
    put_common(out, m);
    put(out, 0, 8);  // no comment, one disk, no attributes...
    put(out, 0, 2);  // ...the last two bytes of them
    put(out, m.at, 4);
    out += m.name;
  }
  const uint64_t size = out.size();
  out.append("PK\x05\x06", 4);
  put(out, 0, 4);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, size, 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

Status check_names(const std::vector<NpyOutput>& arrays) {
  if (arrays.size() > kMaxMembers) {
    return unsupported(cat(arrays.size(), " arrays; an NPZ holds ", kMaxMembers));
  }
  std::vector<std::string_view> names;
  for (const NpyOutput& array : arrays) {
    if (array.name.empty() || array.name.size() > kMaxName) {
      return invalid(cat("a name of ", array.name.size(), " bytes; give it 1 to ", kMaxName));
    }
    names.push_back(array.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) return invalid("occurs twice", std::string(*twice));
  return {};
}

using Sink = std::function<Status(std::span<const std::byte>)>;

Status put_npz(const std::vector<NpyOutput>& arrays, const Sink& sink) {
  LOOM_TRY(check_names(arrays));
  std::vector<Member> members;
  uint64_t at = 0;
  for (const NpyOutput& array : arrays) {
    LOOM_ASSIGN(const std::span<const std::byte> data, data_of(array));
    LOOM_ASSIGN(const std::string npy, npy_header(array, data.size()));
    const uint32_t crc = crc32_of(data, crc32_of(std::as_bytes(std::span(npy))));
    Member m{array.name + ".npy", crc, npy.size() + data.size(), at};
    const std::string header = local_header(m);
    at += header.size() + m.size;
    if (at > kMaxZip) return unsupported("more than 4 GiB, which needs ZIP64; write NPY files");
    LOOM_TRY(sink(std::as_bytes(std::span(header))));
    LOOM_TRY(sink(std::as_bytes(std::span(npy))));
    LOOM_TRY(sink(data));
    members.push_back(std::move(m));
  }
  const std::string end = directory(members, at);
  if (at + end.size() > kMaxZip) return unsupported("more than 4 GiB, which needs ZIP64");
  return sink(std::as_bytes(std::span(end)));
}

}  // namespace

Result<std::string> npy_bytes(const NpyOutput& array) {
  LOOM_ASSIGN(const std::span<const std::byte> data, data_of(array));
  LOOM_ASSIGN(std::string file, npy_header(array, data.size()));
  file.append(reinterpret_cast<const char*>(data.data()), data.size());
  return file;
}

Status write_npy(const std::string& path, const NpyOutput& array) {
  LOOM_ASSIGN(const std::span<const std::byte> data, data_of(array));
  LOOM_ASSIGN(const std::string header, npy_header(array, data.size()));
  LOOM_ASSIGN(AtomicFile file, AtomicFile::create(path));
  LOOM_TRY(file.write(header));
  LOOM_TRY(file.write(data));
  return file.commit();
}

Result<std::string> npz_bytes(const std::vector<NpyOutput>& arrays) {
  std::string out;
  LOOM_TRY(put_npz(arrays, [&](std::span<const std::byte> bytes) -> Status {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }));
  return out;
}

Status write_npz(const FileRef& path, const std::vector<NpyOutput>& arrays) {
  LOOM_ASSIGN(AtomicFile file, AtomicFile::create(path));
  LOOM_TRY(put_npz(arrays, [&](std::span<const std::byte> bytes) { return file.write(bytes); }));
  return file.commit();
}

}  // namespace loom::core
