// The protobuf wire format, as far as our file formats need it: a strict reader of fields and a
// writer. There is no schema; readers request fields by number. Strict: groups, unknown wire types,
// field 0, over-long varints and fields that exceed their message are Errors with the absolute
// byte. Only requested data is copied, and every list has a limit.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/bytes/byte_reader.hpp"

namespace loom::core {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtoField {
  uint32_t number = 0;
  WireType wire = WireType::varint;
  uint64_t value = 0;                     // the bits of a number
  std::span<const std::byte> bytes = {};  // of WireType::bytes
  uint64_t offset = 0;                    // of the field's key, in the file
  uint64_t begin = 0;                     // of `bytes`, in the file
};

// The fields of one message, in file order. `file` and `message` outlive the reader.
class ProtoReader {
 public:
  static constexpr int kMaxDepth = 100;                    // as in protobuf itself
  static constexpr uint64_t kMaxText = uint64_t{1} << 20;  // bytes of one string

  // The whole file as a message; Errors call it `message`.
  ProtoReader(std::span<const std::byte> file, const std::string& where, std::string_view message);

  bool done() const { return reader_.remaining() == 0; }
  Result<ProtoField> next();
  // The message inside a field. Errors: not bytes, nested deeper than kMaxDepth.
  Result<ProtoReader> enter(const ProtoField& field, std::string_view message) const;

  // One value of a field. `what` names it in Errors: "dims".
  Result<int64_t> integer(const ProtoField& field, std::string_view what) const;
  Result<float> f32(const ProtoField& field, std::string_view what) const;
  // UTF-8, at most kMaxText bytes.
  Result<std::string> text(const ProtoField& field, std::string_view what) const;
  Result<std::span<const std::byte>> bytes(const ProtoField& field, std::string_view what) const;
  // Values of a repeated field, packed or one by one, appended to `out`, which then holds at most
  // `most`.
  Status integers(const ProtoField& field, std::string_view what, size_t most,
                  std::vector<int64_t>& out) const;
  Status floats(const ProtoField& field, std::string_view what, size_t most,
                std::vector<float>& out) const;
  Status doubles(const ProtoField& field, std::string_view what, size_t most,
                 std::vector<double>& out) const;

  // An Error at the key of the field: "GraphProto.node: ..."
  Error error(const ProtoField& field, std::string_view what, std::string_view message) const;
  // An Error about the message as a whole, at its first byte.
  Error error(std::string_view message) const;

 private:
  ProtoReader(std::span<const std::byte> file, const std::string& where, std::string_view message,
              uint64_t begin, uint64_t end, int depth);
  Status want(const ProtoField& field, WireType wire, std::string_view what) const;
  template <class T, class Bits>
  Status fixed(const ProtoField& field, WireType wire, std::string_view what, size_t most,
               std::vector<T>& out) const;

  std::span<const std::byte> file_;
  std::string where_;
  std::string_view message_;
  uint64_t begin_ = 0;
  int depth_ = 0;
  ByteReader reader_;
};

// Appends fields to a string, in the order of the calls: equal calls are equal bytes.
class ProtoWriter {
 public:
  void integer(uint32_t number, int64_t value);
  void f32(uint32_t number, float value);
  void f64(uint32_t number, double value);
  void text(uint32_t number, std::string_view value);
  void bytes(uint32_t number, std::span<const std::byte> value);
  void message(uint32_t number, const ProtoWriter& inner) { text(number, inner.out_); }
  void integers(uint32_t number, const std::vector<int64_t>& values);  // packed
  void floats(uint32_t number, const std::vector<float>& values);      // packed
  void doubles(uint32_t number, const std::vector<double>& values);    // packed
  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void varint(uint64_t value);
  void key(uint32_t number, WireType wire);
  std::string out_;
};

}  // namespace loom::core
