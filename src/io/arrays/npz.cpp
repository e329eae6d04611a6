// The ZIP around NPY arrays: see npy.hpp. Sizes come from the central directory
// (zip_directory.hpp); those of local headers may be zero or in extra fields. Invariant: members
// share no byte, so unpacked data is bounded by the size of the file.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/text.hpp"
#include "io/arrays/npy.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/bytes/deflate.hpp"
#include "io/bytes/zip_directory.hpp"

namespace loom::core {
namespace {

constexpr uint16_t kStored = 0, kDeflated = 8;
// The maximum size of an array's header. At most this much of a member is unpacked before its size
// is verified.
constexpr uint64_t kHead = (uint64_t{1} << 20) + 64;

// Byte ranges of the file that members occupy: begin and end of each.
class Places {
 public:
  // False if `begin` to `end` shares a byte with another member.
  bool take(uint64_t begin, uint64_t end) {
    const auto [at, fresh] = taken_.emplace(begin, end);
    if (!fresh) return false;
    const auto next = std::next(at);
    if (next != taken_.end() && next->first < end) return false;
    return at == taken_.begin() || std::prev(at)->second <= begin;
  }

 private:
  std::map<uint64_t, uint64_t> taken_;
};

}  // namespace

Result<Npz> Npz::open(std::span<const std::byte> bytes, const std::string& where,
                      const MemoryBudget& memory) {
  LOOM_ASSIGN(const ZipDirectory directory, read_zip_directory(bytes, where, memory));
  Npz npz;
  npz.where_ = where;
  npz.memory_ = memory;
  npz.file_bytes_ = bytes.size();
  const auto members = bytes.first(static_cast<size_t>(directory.begin));
  std::set<std::string_view> names;
  Places offsets;
  npz.names_.reserve(directory.entries.size());  // `names` has views of them
  for (const ZipEntry& e : directory.entries) {
    std::string name = e.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!names.insert(npz.names_.emplace_back(std::move(name))).second) {
      return bad_file(cat("two members are called '", printable(npz.names_.back()), "'"), where,
                      static_cast<int64_t>(e.end));
    }
    Member member{e.name, e.method, e.crc, e.size, 0, {}};
    LOOM_ASSIGN(member.packed, zip_member(members, where, e, member.at));
    if (!offsets.take(e.local, member.at + e.packed)) {
      return bad_file(cat("'", printable(e.name), "' overlaps another member"), where,
                      static_cast<int64_t>(e.local));
    }
    npz.members_.push_back(std::move(member));
  }
  return npz;
}

// For a member larger than any header: whether its array needs as many bytes as the directory says.
Status Npz::check_head(const Member& member, const std::string& location) const {
  if (member.size <= kHead) return {};
  const auto at = static_cast<int64_t>(member.at);
  Inflater inflater(Inflater::Form::raw, member.packed, location, at);
  std::vector<std::byte> head(kHead);
  LOOM_ASSIGN(const size_t got, inflater.read(head));
  LOOM_ASSIGN(const uint64_t size, npy_size(std::span(head).first(got), location));
  if (size == member.size) return {};
  return bad_file(
      cat("the array in it takes ", size, " bytes, but its directory says ", member.size), location,
      at);
}

// Reserves memory for the unpacked size of a member.
Status Npz::allow(const Member& member, const std::string& location) {
  const uint64_t most = memory_.max_unpacked(file_bytes_);
  if (member.size > most - std::min(most, unpacked_)) {
    return make_error(Code::out_of_memory,
                      cat("unpacks to more than ", size_text(most), ", far more than its ",
                          size_text(file_bytes_),
                          "; if it is a file that you trust, allow it with --memory SIZE"),
                      where_);
  }
  LOOM_ASSIGN(MemoryShare share, memory_.take(member.size, "the unpacked array", location));
  unpacked_ += member.size;
  shares_.push_back(std::move(share));
  return {};
}

Result<ArrayView> Npz::read(size_t index, std::deque<std::string>& storage) {
  const Member& member = members_[index];
  const std::string location = cat(where_, ": ", printable(member.name));
  const auto at = static_cast<int64_t>(member.at);
  if (member.method == kDeflated) {
    LOOM_TRY(check_head(member, location));
    LOOM_TRY(allow(member, location));
    LOOM_ASSIGN(std::string text,
                unpack_deflate(member.packed, member.size, member.crc, location, at));
    storage.push_back(std::move(text));
    return parse_npy(std::as_bytes(std::span(storage.back())), location);
  }
  if (member.method != kStored)
    return bad_file(cat("compression method ", member.method, " is not read"), location, at);
  if (member.packed.size() != member.size) {
    return bad_file(
        cat("stored in ", member.packed.size(), " bytes, but its size says ", member.size),
        location, at);
  }
  if (crc32_of(member.packed) != member.crc)
    return bad_file("the checksum of the data is wrong", location, at);
  return parse_npy(member.packed, location, member.at);
}

Result<std::vector<std::pair<std::string, ArrayView>>> parse_npz(std::span<const std::byte> bytes,
                                                                 const std::string& where,
                                                                 std::deque<std::string>& storage,
                                                                 const MemoryBudget& memory) {
  LOOM_ASSIGN(Npz npz, Npz::open(bytes, where, memory));
  std::vector<std::pair<std::string, ArrayView>> arrays;
  for (size_t i = 0; i < npz.names().size(); ++i) {
    LOOM_ASSIGN(ArrayView array, npz.read(i, storage));
    arrays.emplace_back(npz.names()[i], std::move(array));
  }
  return arrays;
}

}  // namespace loom::core
