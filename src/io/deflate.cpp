// See deflate.hpp. zlib is given at most 1 GB at a time, because its counters are 32 bits wide.
#include "io/deflate.hpp"

#include <zlib.h>

#include <algorithm>

#include "base/text.hpp"

namespace loom {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 30;
constexpr int kGzip = 15 + 16, kRaw = -15;  // zlib's window bits

class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, std::string where, int64_t offset)
      : bytes_(bytes), where_(std::move(where)), offset_(offset) {}
  ~Inflater() {
    if (open_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // One stream into the end of `out`, which may grow to `max` bytes.
  Status stream(int window_bits, uint64_t max, std::string& out);
  uint64_t used() const { return used_; }
  Error error(std::string message) const {
    return bad_file(std::move(message), where_, offset_ + static_cast<int64_t>(used_));
  }

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  int64_t offset_;
  uint64_t used_ = 0;
  z_stream stream_ = {};
  bool open_ = false;
};

Status Inflater::stream(int window_bits, uint64_t max, std::string& out) {
  const int begun =
      open_ ? inflateReset2(&stream_, window_bits) : inflateInit2(&stream_, window_bits);
  if (begun != Z_OK) return make_error(Code::out_of_memory, "no memory to unpack", where_);
  open_ = true;
  uint64_t done = out.size();
  for (;;) {
    if (done == out.size()) {
      // One byte beyond the limit shows that there is more than allowed.
      const uint64_t room = std::max<uint64_t>(2 * done, 4 * bytes_.size() + 4096);
      out.resize(static_cast<size_t>(std::min(room, max + 1)));
    }
    const uint64_t in = std::min(kPiece, bytes_.size() - used_);
    const uint64_t space = std::min(kPiece, out.size() - done);
    // zlib does not write through next_in, but its type says so.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes_.data() + used_));
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream_.avail_out = static_cast<uInt>(space);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    used_ += in - stream_.avail_in;
    done += space - stream_.avail_out;
    if (done > max) return error(cat("unpacks to more than ", max, " bytes"));
    if (code == Z_STREAM_END) break;
    if (code == Z_BUF_ERROR || (code == Z_OK && used_ == bytes_.size() && stream_.avail_out > 0))
      return error("the compressed data ends too early");
    if (code == Z_MEM_ERROR) return make_error(Code::out_of_memory, "no memory to unpack", where_);
    if (code != Z_OK)
      return error(cat("damaged compressed data: ",
                       stream_.msg != nullptr ? stream_.msg : "not a deflate stream"));
  }
  out.resize(static_cast<size_t>(done));
  return {};
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

Result<std::string> unpack_gzip(std::span<const std::byte> bytes, const std::string& where,
                                uint64_t max_bytes) {
  Inflater inflater(bytes, where, 0);
  std::string out;
  do {
    LOOM_TRY(inflater.stream(kGzip, max_bytes, out));
  } while (is_gzip(bytes.subspan(static_cast<size_t>(inflater.used()))));
  if (inflater.used() != bytes.size()) {
    return inflater.error(cat(bytes.size() - inflater.used(), " bytes after the end of the data"));
  }
  return out;
}

Result<std::string> unpack_deflate(std::span<const std::byte> bytes, uint64_t size, uint32_t crc,
                                   const std::string& where, int64_t offset) {
  Inflater inflater(bytes, where, offset);
  std::string out;
  LOOM_TRY(inflater.stream(kRaw, size, out));
  if (out.size() != size)
    return inflater.error(cat("unpacks to ", out.size(), " bytes, must be ", size));
  if (inflater.used() != bytes.size()) {
    return inflater.error(cat(bytes.size() - inflater.used(), " bytes after the compressed data"));
  }
  if (crc32_of(std::as_bytes(std::span(out))) != crc)
    return bad_file("the checksum of the data is wrong", where, offset);
  return out;
}

uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before) {
  return static_cast<uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Result<DataFile> DataFile::open(const std::string& path) {
  DataFile file;
  LOOM_ASSIGN(file.map_, MappedFile::open(path));
  if (is_gzip(file.map_.bytes())) {
    LOOM_ASSIGN(std::string text, unpack_gzip(file.map_.bytes(), path));
    file.text_ = std::make_unique<std::string>(std::move(text));
    file.map_ = MappedFile();
  }
  return file;
}

Result<DataFile> DataFile::of(std::span<const std::byte> bytes, const std::string& where,
                              uint64_t max_bytes) {
  DataFile file;
  file.text_ =
      std::make_unique<std::string>(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (is_gzip(bytes)) {
    LOOM_ASSIGN(*file.text_, unpack_gzip(bytes, where, max_bytes));
  }
  return file;
}

}  // namespace loom
