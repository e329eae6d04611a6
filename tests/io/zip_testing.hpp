// ZipFile: builds ZIP files byte by byte, so that tests can falsify every field.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/bytes/deflate.hpp"
#include "io/io_testing.hpp"

namespace loom::core::test {

inline std::string le(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// An NPY array of `count` bytes.
inline std::string small_npy(size_t count = 2) {
  const std::string header =
      "{'descr':'|u1','fortran_order':False,'shape':(" + std::to_string(count) + ",)}";
  return "\x93NUMPY" + le(1, 2) + le(header.size(), 2) + header + std::string(count, 'd');
}

struct ZipMember {
  std::string name = "x.npy";
  std::string data = small_npy();
  uint16_t flags = 0, method = 0;
  // Fields of the directory; -1 means the true value.
  int64_t packed = -1, size = -1, crc = -1, local = -1;
  // Fields of the local header.
  std::string own_name = "=";  // "=": the same name
  int own_method = -1;
  uint32_t own_signature = 0x04034B50, signature = 0x02014B50;
  std::string extra;
};

struct ZipFile {
  std::vector<ZipMember> members;
  // Fields of the end record; -1 means the true value.
  int64_t count = -1, here = -1, size = -1, begin = -1;
  uint32_t disks = 0;
  std::string comment, between, after;  // between: after the directory, before the end record

  std::string bytes() const {
    std::string out, directory;
    const auto or_true = [](int64_t message, uint64_t truth) {
      return message < 0 ? truth : static_cast<uint64_t>(message);
    };
    for (const ZipMember& m : members) {
      const uint64_t at = out.size();
      const std::string own = m.own_name == "=" ? m.name : m.own_name;
      const std::string crc = le(or_true(m.crc, crc32_of(bytes_of(m.data))), 4);
      const std::string sizes =
          le(or_true(m.packed, m.data.size()), 4) + le(or_true(m.size, m.data.size()), 4);
      out += le(m.own_signature, 4) + le(20, 2) + le(m.flags, 2) +
             le(or_true(m.own_method, m.method), 2) + le(0, 4) + crc + sizes + le(own.size(), 2) +
             le(m.extra.size(), 2) + own + m.extra + m.data;
      directory += le(m.signature, 4) + le(20, 2) + le(20, 2) + le(m.flags, 2) + le(m.method, 2) +
                   le(0, 4) + crc + sizes + le(m.name.size(), 2) + le(0, 4) + le(0, 8) +
                   le(or_true(m.local, at), 4) + m.name;
    }
    const std::string end =
        le(0x06054B50, 4) + le(disks, 4) + le(or_true(here, members.size()), 2) +
        le(or_true(count, members.size()), 2) + le(or_true(size, directory.size()), 4) +
        le(or_true(begin, out.size()), 4) + le(comment.size(), 2) + comment;
    return out + directory + between + end + after;
  }
};

}  // namespace loom::core::test
