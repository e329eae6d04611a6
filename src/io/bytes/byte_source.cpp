#include "io/bytes/byte_source.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {

Result<ByteSource> ByteSource::open(const FileRef& path, const MemoryBudget& memory) {
  ByteSource source;
  source.where_ = path;
  source.memory_ = memory;
  LOOM_ASSIGN(source.map_, MappedFile::open(path));
  source.packed_ = is_gzip(source.stored());
  return source;
}

ByteSource ByteSource::of(std::span<const std::byte> bytes, std::string where,
                          const MemoryBudget& memory) {
  ByteSource source;
  source.where_ = std::move(where);
  source.memory_ = memory;
  source.bytes_ = bytes;
  source.packed_ = is_gzip(bytes);
  return source;
}

ByteSource ByteSource::own(std::string bytes, std::string where, const MemoryBudget& memory) {
  const auto owned = std::make_shared<const std::string>(std::move(bytes));
  ByteSource source = of(std::as_bytes(std::span(*owned)), std::move(where), memory);
  source.packed_ = false;
  source.owned_ = owned;
  return source;
}

void ByteSource::rewind() {
  at_ = 0;
  inflater_.reset();
}

// Whether the budget allows this many unpacked bytes.
Status ByteSource::allow(uint64_t unpacked) const {
  const uint64_t most = memory_.max_unpacked(stored().size());
  if (unpacked <= most) return {};
  return make_error(Code::out_of_memory,
                    cat("unpacks to more than ", size_text(most), ", far more than its ",
                        size_text(stored().size()),
                        "; if it is a file that you trust, allow it with --memory SIZE"),
                    where_);
}

Result<size_t> ByteSource::unpack(std::span<std::byte> out) {
  if (inflater_ == nullptr)
    inflater_ = std::make_unique<Inflater>(Inflater::Form::gzip, stored(), where_);
  LOOM_ASSIGN(const size_t done, inflater_->read(out));
  at_ += done;
  LOOM_TRY(allow(at_));
  return done;
}

Result<std::span<const std::byte>> ByteSource::next() {
  if (packed_) {
    piece_.resize(kPiece);
    LOOM_ASSIGN(const size_t got, unpack(piece_));
    return std::span<const std::byte>(piece_).first(got);
  }
  const std::span<const std::byte> all = stored();
  const auto piece = all.subspan(static_cast<size_t>(at_),
                                 static_cast<size_t>(std::min<uint64_t>(kPiece, all.size() - at_)));
  if (at_ >= kPiece) map_.release(at_ - kPiece, kPiece);
  at_ += piece.size();
  return piece;
}

Result<std::string> ByteSource::head(size_t most) {
  rewind();
  std::string out(most, '\0');
  LOOM_ASSIGN(const size_t got, unpack(std::as_writable_bytes(std::span(out))));
  out.resize(got);
  return out;
}

Result<std::string> ByteSource::read_all(uint64_t size) {
  rewind();
  LOOM_TRY(allow(size));
  // One byte past the size reveals excess data.
  std::string out(static_cast<size_t>(size) + 1, '\0');
  LOOM_ASSIGN(const size_t got, unpack(std::as_writable_bytes(std::span(out))));
  if (got > size) return inflater_->error(cat("unpacks to more than ", size, " bytes"));
  if (got < size) return inflater_->error(cat("unpacks to ", got, " bytes, must be ", size));
  out.resize(got);
  return out;
}

Result<uint64_t> ByteSource::count() {
  if (!packed_) return stored().size();
  rewind();
  for (;;) {
    LOOM_ASSIGN(const auto piece, next());
    if (piece.empty()) return at_;
    if (at_ > memory_.left()) return memory_.error(at_, "what it unpacks to", where_);
  }
}

}  // namespace loom::core
