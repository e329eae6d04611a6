#include "io/weights/pickle.hpp"

#include <bit>
#include <unordered_map>

#include "base/text.hpp"
#include "io/bytes/byte_reader.hpp"

namespace loom::core {

namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Little-endian two's complement, as LONG1 has it.
bool read_long(std::span<const std::byte> bytes, int64_t& out) {
  if (bytes.size() > 8) return false;
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t(bytes[i]) << (8 * i);
  const size_t bits = 8 * bytes.size();
  if (bits > 0 && bits < 64 && (value >> (bits - 1)) != 0) value |= ~uint64_t{0} << bits;
  out = static_cast<int64_t>(value);
  return true;
}

}  // namespace

// The machine of a pickle: a stack of values, marks in it, and a memo.
class PickleReader {
 public:
  PickleReader(std::span<const std::byte> bytes, uint64_t offset, const std::string& where,
               const std::function<bool(std::string_view)>& calls)
      : bytes_(bytes), offset_(offset), where_(where), calls_(calls), reader_(bytes, where) {}

  Result<Pickle> read(size_t& end) {
    while (true) {
      LOOM_ASSIGN(const uint8_t op, reader_.u8("a pickle"));
      if (op == '.') break;
      LOOM_TRY(step(op));
      if (out_.values_.size() > kMaxPickleValues)
        return fault(cat("a pickle of more than ", kMaxPickleValues, " values"));
    }
    LOOM_ASSIGN(out_.root_, pop());
    end = static_cast<size_t>(reader_.offset());
    return std::move(out_);
  }

 private:
  Error fault(std::string message) const {
    return bad_file(std::move(message), where_, static_cast<int64_t>(offset_ + reader_.offset()));
  }

  uint32_t add(PickleValue value) {
    out_.values_.push_back(std::move(value));
    return static_cast<uint32_t>(out_.values_.size() - 1);
  }
  void push(PickleValue value) { stack_.push_back(add(std::move(value))); }
  Status push_integer(int64_t value, PickleKind kind = PickleKind::integer) {
    push({.kind = kind, .integer = value});
    return {};
  }
  Result<uint32_t> pop() {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) return fault("the pickle takes a value that is not there");
    const uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  // The values since the last mark.
  Result<std::vector<uint32_t>> pop_mark() {
    if (marks_.empty()) return fault("the pickle has no mark here");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<uint32_t> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  Result<std::vector<uint32_t>> pop_some(size_t count) {
    std::vector<uint32_t> items(count);
    for (size_t i = count; i-- > 0;) {
      LOOM_ASSIGN(items[i], pop());
    }
    return items;
  }

  // `bytes`: the width of the length before the text.
  Status push_text(int bytes, PickleKind kind) {
    uint64_t size = 0;
    if (bytes == 1) {
      LOOM_ASSIGN(size, reader_.u8("a length"));
    } else if (bytes == 4) {
      LOOM_ASSIGN(size, reader_.u32("a length"));
    } else {
      LOOM_ASSIGN(size, reader_.u64("a length"));
    }
    LOOM_ASSIGN(const auto text, reader_.take(size, "a text"));
    push({.kind = kind, .text = text_of(text)});
    return {};
  }
  Status push_long(uint64_t size) {
    LOOM_ASSIGN(const auto bytes, reader_.take(size, "a number"));
    int64_t value = 0;
    if (!read_long(bytes, value)) return fault("an integer of more than 64 bits");
    return push_integer(value);
  }
  Status push_real() {
    LOOM_ASSIGN(const auto bytes, reader_.take(8, "a number"));
    uint64_t bits = 0;  // big-endian
    for (const std::byte b : bytes) bits = bits << 8 | uint64_t(b);
    push({.kind = PickleKind::real, .real = std::bit_cast<double>(bits)});
    return {};
  }
  Status push_items(PickleKind kind, Result<std::vector<uint32_t>> items) {
    if (!items.ok()) return items.error();
    push({.kind = kind, .items = std::move(*items)});
    return {};
  }
  Status push_global(std::string_view module, std::string_view name) {
    auto full = std::make_unique<std::string>(cat(module, " ", name));
    if (!calls_(*full)) {
      return unsupported(cat("uses ", printable(module), ".", printable(name),
                             ", and only tensors are read; save a state_dict of tensors"),
                         where_);
    }
    push({.kind = PickleKind::global, .text = *full});
    out_.names_.push_back(std::move(full));
    return {};
  }
  Result<std::string_view> line() {
    const size_t from = static_cast<size_t>(reader_.offset());
    uint8_t c = 0;
    do {
      LOOM_ASSIGN(c, reader_.u8("a name"));
    } while (c != '\n');
    return text_of(bytes_.subspan(from, static_cast<size_t>(reader_.offset()) - from - 1));
  }

  // APPENDS, SETITEMS, ADDITEMS: the items go into the container below them.
  Status add_to(PickleKind kind, Result<std::vector<uint32_t>> items) {
    if (!items.ok()) return items.error();
    LOOM_ASSIGN(const uint32_t to, pop());
    stack_.push_back(to);
    PickleValue& value = out_.values_[to];
    const bool pairs = kind == PickleKind::dict;
    if (value.kind != kind || (pairs && items->size() % 2 != 0))
      return fault("the pickle adds items to something else than a list or a dictionary");
    value.items.insert(value.items.end(), items->begin(), items->end());
    return {};
  }
  // A call of a class without arguments that behaves like a dictionary is one.
  Status call() {
    LOOM_ASSIGN(std::vector<uint32_t> items, pop_some(2));
    const PickleValue &made = out_.values_[items[0]], &with = out_.values_[items[1]];
    if (made.kind != PickleKind::global || with.kind != PickleKind::tuple)
      return fault("the pickle calls something that is not a name");
    if (made.text == "collections OrderedDict") return ordered(with);
    push({.kind = PickleKind::called, .items = std::move(items)});
    return {};
  }
  // OrderedDict(), or of a list of pairs.
  Status ordered(const PickleValue& with) {
    PickleValue dict{.kind = PickleKind::dict};
    if (!with.items.empty()) {
      copied_ += out_.values_[with.items[0]].items.size();
      if (copied_ > kMaxPickleValues) return fault("a pickle that copies too many values");
      for (const uint32_t index : out_.values_[with.items[0]].items) {
        const PickleValue& pair = out_.values_[index];
        if (pair.items.size() != 2) return fault("an OrderedDict of something else than pairs");
        dict.items.insert(dict.items.end(), pair.items.begin(), pair.items.end());
      }
    }
    push(std::move(dict));
    return {};
  }
  Status store(uint64_t key) {
    LOOM_ASSIGN(const uint32_t top, pop());
    stack_.push_back(top);
    memo_[key] = top;
    return {};
  }
  Status load(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) return fault("the pickle reads a memo that it did not write");
    stack_.push_back(found->second);
    return {};
  }

  Status step(uint8_t op);
  Status step_data(uint8_t op);
  Status step_items(uint8_t op);
  Status step_names(uint8_t op);

  std::span<const std::byte> bytes_;
  uint64_t offset_;
  const std::string& where_;
  const std::function<bool(std::string_view)>& calls_;
  ByteReader reader_;
  Pickle out_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  size_t copied_ = 0;  // items of OrderedDicts, which may share their pairs
};

Status PickleReader::step(uint8_t op) {
  switch (op) {
    case 0x80:  // PROTO
      return reader_.skip(1, "a protocol");
    case 0x95:  // FRAME
      return reader_.skip(8, "a frame");
    case '(':  // MARK
      marks_.push_back(stack_.size());
      return {};
    case '0': {  // POP
      LOOM_ASSIGN([[maybe_unused]] const uint32_t top, pop());
      return {};
    }
    case '1':  // POP_MARK
      return pop_mark().ok() ? Status() : fault("the pickle has no mark here");
    case '2': {  // DUP
      LOOM_ASSIGN(const uint32_t top, pop());
      stack_.push_back(top);
      stack_.push_back(top);
      return {};
    }
    default: return step_data(op);
  }
}

Status PickleReader::step_data(uint8_t op) {
  switch (op) {
    case 'N': push({}); return {};                           // NONE
    case 0x88: return push_integer(1, PickleKind::boolean);  // NEWTRUE
    case 0x89: return push_integer(0, PickleKind::boolean);  // NEWFALSE
    case 'K': {                                              // BININT1
      LOOM_ASSIGN(const uint8_t value, reader_.u8("a number"));
      return push_integer(value);
    }
    case 'M': {  // BININT2
      LOOM_ASSIGN(const uint16_t value, reader_.u16("a number"));
      return push_integer(value);
    }
    case 'J': {  // BININT
      LOOM_ASSIGN(const uint32_t value, reader_.u32("a number"));
      return push_integer(static_cast<int32_t>(value));
    }
    case 0x8a: {  // LONG1
      LOOM_ASSIGN(const uint8_t size, reader_.u8("a length"));
      return push_long(size);
    }
    case 0x8b: {  // LONG4
      LOOM_ASSIGN(const uint32_t size, reader_.u32("a length"));
      return push_long(size);
    }
    case 'G': return push_real();                       // BINFLOAT
    case 'X': return push_text(4, PickleKind::text);    // BINUNICODE
    case 0x8c: return push_text(1, PickleKind::text);   // SHORT_BINUNICODE
    case 0x8d: return push_text(8, PickleKind::text);   // BINUNICODE8
    case 'U': return push_text(1, PickleKind::text);    // SHORT_BINSTRING, of Python 2
    case 'T': return push_text(4, PickleKind::text);    // BINSTRING
    case 'C': return push_text(1, PickleKind::bytes);   // SHORT_BINBYTES
    case 'B': return push_text(4, PickleKind::bytes);   // BINBYTES
    case 0x8e: return push_text(8, PickleKind::bytes);  // BINBYTES8
    default: return step_items(op);
  }
}

Status PickleReader::step_items(uint8_t op) {
  switch (op) {
    case ')': push({.kind = PickleKind::tuple}); return {};  // EMPTY_TUPLE
    case ']':
    case 0x8f: push({.kind = PickleKind::list}); return {};      // EMPTY_LIST, EMPTY_SET
    case '}': push({.kind = PickleKind::dict}); return {};       // EMPTY_DICT
    case 't': return push_items(PickleKind::tuple, pop_mark());  // TUPLE
    case 0x85: return push_items(PickleKind::tuple, pop_some(1));
    case 0x86: return push_items(PickleKind::tuple, pop_some(2));
    case 0x87: return push_items(PickleKind::tuple, pop_some(3));
    case 'l': return push_items(PickleKind::list, pop_mark());  // LIST
    case 'd': return push_items(PickleKind::dict, pop_mark());  // DICT
    case 'a': return add_to(PickleKind::list, pop_some(1));     // APPEND
    case 'e':
    case 0x90: return add_to(PickleKind::list, pop_mark());  // APPENDS, ADDITEMS
    case 's': return add_to(PickleKind::dict, pop_some(2));  // SETITEM
    case 'u': return add_to(PickleKind::dict, pop_mark());   // SETITEMS
    default: return step_names(op);
  }
}

Status PickleReader::step_names(uint8_t op) {
  switch (op) {
    case 'c': {  // GLOBAL
      LOOM_ASSIGN(const std::string_view module, line());
      LOOM_ASSIGN(const std::string_view name, line());
      return push_global(module, name);
    }
    case 0x93: {  // STACK_GLOBAL
      LOOM_ASSIGN(const std::vector<uint32_t> names, pop_some(2));
      return push_global(out_.values_[names[0]].text, out_.values_[names[1]].text);
    }
    case 'R':
    case 0x81: return call();  // REDUCE, NEWOBJ
    case 'b': {                // BUILD: attributes
      LOOM_ASSIGN([[maybe_unused]] const uint32_t state, pop());
      return {};
    }
    case 'Q': return push_items(PickleKind::persistent, pop_some(1));  // BINPERSID
    case 'q': {                                                        // BINPUT
      LOOM_ASSIGN(const uint8_t key, reader_.u8("a key"));
      return store(key);
    }
    case 'r': {  // LONG_BINPUT
      LOOM_ASSIGN(const uint32_t key, reader_.u32("a key"));
      return store(key);
    }
    case 0x94: return store(memo_.size());  // MEMOIZE
    case 'h': {                             // BINGET
      LOOM_ASSIGN(const uint8_t key, reader_.u8("a key"));
      return load(key);
    }
    case 'j': {  // LONG_BINGET
      LOOM_ASSIGN(const uint32_t key, reader_.u32("a key"));
      return load(key);
    }
    default:
      return fault(cat("the pickle has an instruction (", static_cast<int>(op),
                       ") that "
                       "files of tensors lack"));
  }
}

Result<Pickle> Pickle::parse(std::span<const std::byte> bytes, uint64_t offset,
                             const std::string& where,
                             const std::function<bool(std::string_view)>& calls, size_t& end) {
  return PickleReader(bytes, offset, where, calls).read(end);
}

}  // namespace loom::core
