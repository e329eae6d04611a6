// Tables of a flatbuffer from an untrusted file. The verifier of the flatbuffers library checks
// every field against the bytes of the file before it is read. An absent field leaves the value of
// the caller. A field outside of the file, or at an address that its type does not allow, returns
// false. Tables and lists may be shared in a flatbuffer, so a small file could ask for any amount
// of memory. So copied bytes are counted, and are at most a few times the file. Private to the
// room.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loom::core {

struct FlatFile {
  explicit FlatFile(std::span<const std::byte> file)
      : base(reinterpret_cast<const uint8_t*>(file.data())),
        verifier(base, file.size(), 64, kMaxTables),
        left(16 * file.size() + (size_t{1} << 20)) {}

  // Whether `count` more values of `bytes` each may be copied out.
  bool take(size_t count, size_t bytes) {
    if (count > left / bytes) return false;
    left -= count * bytes;
    return true;
  }

  static constexpr flatbuffers::uoffset_t kMaxTables = flatbuffers::uoffset_t{1} << 24;
  const uint8_t* base;
  flatbuffers::Verifier verifier;
  size_t left;
};

class FlatTable {
 public:
  FlatTable() = default;

  // The table that the file begins with; false: there is none.
  static bool root(FlatFile& file, FlatTable& out) {
    const flatbuffers::uoffset_t at = file.verifier.VerifyOffset(size_t{0});
    return at != 0 && enter(file, file.base + at, out);
  }

  template <class T>
  bool number(int field, T& out) const {
    const uint8_t* at = locate(field);
    if (at == nullptr) return true;
    const auto offset = static_cast<flatbuffers::voffset_t>(at - here());
    if (!file_->verifier.VerifyField<T>(here(), offset, sizeof(T))) return false;
    out = flatbuffers::ReadScalar<T>(at);
    return true;
  }
  // As another type than that of the file.
  template <class T, class Out>
  bool number_as(int field, Out& out) const {
    if (locate(field) == nullptr) return true;
    T value{};
    if (!number<T>(field, value)) return false;
    out = static_cast<Out>(value);
    return true;
  }

  template <class T, class Out>
  bool list(int field, size_t most, std::vector<Out>& out) const {
    const uint8_t* at = nullptr;
    if (!target(field, at)) return false;
    if (at == nullptr) return true;
    const auto* v = reinterpret_cast<const flatbuffers::Vector<T>*>(at);
    if (!file_->verifier.VerifyVector(v) || v->size() > most || !aligned(v->Data(), sizeof(T)) ||
        !file_->take(v->size(), sizeof(Out)))
      return false;
    out.clear();
    for (flatbuffers::uoffset_t i = 0; i < v->size(); ++i)
      out.push_back(static_cast<Out>(v->Get(i)));
    return true;
  }

  bool bytes(int field, std::span<const std::byte>& out) const {
    const uint8_t* at = nullptr;
    if (!target(field, at)) return false;
    if (at == nullptr) return true;
    const auto* v = reinterpret_cast<const flatbuffers::Vector<uint8_t>*>(at);
    if (!file_->verifier.VerifyVector(v)) return false;
    out = {reinterpret_cast<const std::byte*>(v->Data()), v->size()};
    return true;
  }

  bool text(int field, std::string& out) const {
    std::span<const std::byte> all;
    if (!bytes(field, all) || !file_->take(all.size(), 1)) return false;
    out.assign(reinterpret_cast<const char*>(all.data()), all.size());
    return true;
  }

  // `there`: whether the file has it.
  bool table(int field, FlatTable& out, bool& there) const {
    const uint8_t* at = nullptr;
    if (!target(field, at)) return false;
    there = at != nullptr;
    return !there || enter(*file_, at, out);
  }

  bool tables(int field, size_t most, std::vector<FlatTable>& out) const {
    const uint8_t* at = nullptr;
    if (!target(field, at)) return false;
    if (at == nullptr) return true;
    const auto* v = reinterpret_cast<const flatbuffers::Vector<flatbuffers::uoffset_t>*>(at);
    if (!file_->verifier.VerifyVector(v) || v->size() > most || !file_->take(v->size(), kOfTable))
      return false;
    for (flatbuffers::uoffset_t i = 0; i < v->size(); ++i) {
      const uint8_t* slot = v->Data() + i * sizeof(flatbuffers::uoffset_t);
      const flatbuffers::uoffset_t offset =
          file_->verifier.VerifyOffset(static_cast<size_t>(slot - file_->base));
      FlatTable one;
      if (offset == 0 || !enter(*file_, slot + offset, one)) return false;
      out.push_back(one);
    }
    return true;
  }

 private:
  static constexpr size_t kOfTable = 64;  // what is made of a table that a list names, about

  static bool enter(FlatFile& file, const uint8_t* at, FlatTable& out) {
    if (!file.verifier.VerifyTableStart(at)) return false;
    file.verifier.EndTable();  // depth counts tables that are open at a time; here none is
    out.file_ = &file;
    out.table_ = reinterpret_cast<const flatbuffers::Table*>(at);
    return true;
  }

  const uint8_t* here() const { return reinterpret_cast<const uint8_t*>(table_); }

  // The address of a field; null if it is absent.
  const uint8_t* locate(int field) const {
    const auto at =
        table_->GetOptionalFieldOffset(static_cast<flatbuffers::voffset_t>(4 + 2 * field));
    return at == 0 ? nullptr : here() + at;
  }

  // The object that a field points at.
  bool target(int field, const uint8_t*& out) const {
    const uint8_t* slot = locate(field);
    if (slot == nullptr) return true;
    const flatbuffers::uoffset_t offset =
        file_->verifier.VerifyOffset(static_cast<size_t>(slot - file_->base));
    if (offset == 0) return false;
    out = slot + offset;
    return true;
  }

  bool aligned(const uint8_t* at, size_t to) const {
    return (static_cast<size_t>(at - file_->base) & (to - 1)) == 0;
  }

  FlatFile* file_ = nullptr;
  const flatbuffers::Table* table_ = nullptr;
};

}  // namespace loom::core
