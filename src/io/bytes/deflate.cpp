// See deflate.hpp. zlib gets at most 1 GB at a time, because its counters have 32 bits.
#include "io/bytes/deflate.hpp"

#include <zlib.h>

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 30;

int window_bits(Inflater::Form form) {
  return form == Inflater::Form::gzip ? 15 + 16 : -15;
}

}  // namespace

// Not movable: zlib keeps a pointer to its own stream.
struct Inflater::State {
  Form form;
  std::span<const std::byte> bytes;
  std::string where;
  int64_t offset = 0;
  uint64_t used = 0;
  z_stream stream = {};
  bool open = false;   // inflateInit2 succeeded
  bool ended = false;  // the last byte of the last stream was returned
};

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

Inflater::Inflater(Form form, std::span<const std::byte> bytes, std::string where, int64_t offset)
    : state_(std::make_unique<State>()) {
  state_->form = form;
  state_->bytes = bytes;
  state_->where = std::move(where);
  state_->offset = offset;
}
Inflater::Inflater(Inflater&& other) noexcept = default;
Inflater& Inflater::operator=(Inflater&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Inflater::~Inflater() {
  if (state_ != nullptr && state_->open) inflateEnd(&state_->stream);
}

uint64_t Inflater::used() const {
  return state_->used;
}

Error Inflater::error(std::string message) const {
  return bad_file(std::move(message), state_->where,
                  state_->offset + static_cast<int64_t>(state_->used));
}

// After the end of a stream: the next member of a gzip file, or the end of the data.
Status Inflater::next_stream() {
  State& s = *state_;
  const auto rest = s.bytes.subspan(static_cast<size_t>(s.used));
  if (s.form == Form::gzip && is_gzip(rest)) {
    if (inflateReset2(&s.stream, window_bits(s.form)) == Z_OK) return {};
    return make_error(Code::out_of_memory, "no memory to unpack", s.where);
  }
  s.ended = true;
  if (rest.empty()) return {};
  return error(cat(rest.size(), " bytes after the ",
                   s.form == Form::gzip ? "end of the data" : "compressed data"));
}

// One zlib call.
Status Inflater::piece(std::span<std::byte> out, size_t& done) {
  State& s = *state_;
  const uint64_t in = std::min(kPiece, s.bytes.size() - s.used);
  const uint64_t space = std::min<uint64_t>(kPiece, out.size() - done);
  // zlib does not write through next_in, but its type says so.
  s.stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(s.bytes.data() + s.used));
  s.stream.avail_in = static_cast<uInt>(in);
  s.stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
  s.stream.avail_out = static_cast<uInt>(space);
  const int code = inflate(&s.stream, Z_NO_FLUSH);
  s.used += in - s.stream.avail_in;
  done += static_cast<size_t>(space - s.stream.avail_out);
  if (code == Z_STREAM_END) return next_stream();
  if (code == Z_BUF_ERROR || (code == Z_OK && s.used == s.bytes.size() && s.stream.avail_out > 0))
    return error("the compressed data ends too early");
  if (code == Z_MEM_ERROR) return make_error(Code::out_of_memory, "no memory to unpack", s.where);
  if (code == Z_OK) return {};
  return error(cat("damaged compressed data: ",
                   s.stream.msg != nullptr ? s.stream.msg : "not a deflate stream"));
}

Result<size_t> Inflater::read(std::span<std::byte> out) {
  State& s = *state_;
  if (!s.open) {
    if (inflateInit2(&s.stream, window_bits(s.form)) != Z_OK)
      return make_error(Code::out_of_memory, "no memory to unpack", s.where);
    s.open = true;
  }
  size_t done = 0;
  while (done < out.size() && !s.ended) LOOM_TRY(piece(out, done));
  return done;
}

Result<std::string> unpack_deflate(std::span<const std::byte> bytes, uint64_t size, uint32_t crc,
                                   const std::string& where, int64_t offset) {
  Inflater inflater(Inflater::Form::raw, bytes, where, offset);
  // One byte past the size reveals excess data.
  std::string out(static_cast<size_t>(size) + 1, '\0');
  LOOM_ASSIGN(const size_t done, inflater.read(std::as_writable_bytes(std::span(out))));
  if (done > size) return inflater.error(cat("unpacks to more than ", size, " bytes"));
  if (done < size) return inflater.error(cat("unpacks to ", done, " bytes, must be ", size));
  out.resize(done);
  if (crc32_of(std::as_bytes(std::span(out))) != crc)
    return bad_file("the checksum of the data is wrong", where, offset);
  return out;
}

uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before) {
  return static_cast<uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace loom::core
