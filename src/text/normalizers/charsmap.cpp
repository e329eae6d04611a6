#include "text/normalizers/charsmap.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"
#include "text/normalizers/unicode_tables.hpp"

namespace loom::core::text {
namespace {

// Numbered as in tools/text/make_unicode_tables.py.
enum Break : uint8_t {
  kOther,
  kCr,
  kLf,
  kControl,
  kExtend,
  kZwj,
  kRegional,
  kPrepend,
  kSpacing,
  kL,
  kV,
  kT,
  kLv,
  kLvt,
  kPictographic
};
enum Conjunct : uint8_t { kNone, kLinker, kConsonant, kConjunctExtend };

struct Breaks {
  uint8_t kind = kOther, conjunct = kNone;
};

Breaks breaks_of(char32_t c) {
  const auto after =
      std::upper_bound(kGraphemeBreaks.begin(), kGraphemeBreaks.end(), c,
                       [](char32_t value, uint32_t run) { return value < (run >> 8); });
  const uint32_t value = after == kGraphemeBreaks.begin() ? 0 : *(after - 1) & 0xff;
  return {static_cast<uint8_t>(value & 15), static_cast<uint8_t>(value >> 4)};
}

// State of the current cluster for the rules.
struct Cluster {
  Breaks last;
  int regionals = 0;        // at its end
  bool pictograph = false;  // it ends with a pictographic character and any Extend
  bool joined = false;      // followed by a ZWJ
  bool consonant = false;   // it ends with a consonant, then Linker and Extend
  bool linked = false;      // with at least one Linker

  void add(const Breaks& next) {
    regionals = next.kind == kRegional ? regionals + 1 : 0;
    joined = next.kind == kZwj && pictograph;
    pictograph = next.kind == kPictographic || (pictograph && next.kind == kExtend);
    const bool inside = next.conjunct == kLinker || next.conjunct == kConjunctExtend;
    linked = consonant && inside && (linked || next.conjunct == kLinker);
    consonant = next.conjunct == kConsonant || (consonant && inside);
    last = next;
  }
};

bool ends_line(uint8_t kind) {
  return kind == kCr || kind == kLf || kind == kControl;
}

// Rules GB3 to GB13: whether `next` belongs to the cluster.
bool continues(const Cluster& cluster, const Breaks& next) {
  const uint8_t last = cluster.last.kind, kind = next.kind;
  if (last == kCr && kind == kLf) return true;
  if (ends_line(last) || ends_line(kind)) return false;
  if (last == kL && (kind == kL || kind == kV || kind == kLv || kind == kLvt)) return true;
  if ((last == kLv || last == kV) && (kind == kV || kind == kT)) return true;
  if ((last == kLvt || last == kT) && kind == kT) return true;
  if (kind == kExtend || kind == kZwj || kind == kSpacing || last == kPrepend) return true;
  if (cluster.linked && next.conjunct == kConsonant) return true;
  if (cluster.joined && kind == kPictographic) return true;
  return kind == kRegional && cluster.regionals % 2 == 1;
}

uint32_t unit_at(std::string_view bytes, size_t at) {
  uint32_t unit = 0;
  for (size_t i = 0; i < 4; ++i)
    unit |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return unit;
}

size_t offset_of(uint32_t unit) {
  return static_cast<size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

}  // namespace

size_t grapheme_end(std::string_view text, size_t at) {
  Cluster cluster;
  CodePoint c = code_point_at(text, at);
  cluster.add(breaks_of(c.value));
  at += c.length;
  while (at < text.size()) {
    c = code_point_at(text, at);
    const Breaks next = breaks_of(c.value);
    if (!continues(cluster, next)) break;
    cluster.add(next);
    at += c.length;
  }
  return at;
}

Result<Charsmap> Charsmap::parse(std::string_view bytes, const std::string& where) {
  const auto damaged = [&] { return bad_file("is not a character map of SentencePiece", where); };
  if (bytes.size() < 4) return damaged();
  const size_t trie = unit_at(bytes, 0);
  if (trie % 4 != 0 || trie > bytes.size() - 4) return damaged();
  Charsmap map;
  for (size_t at = 4; at < 4 + trie; at += 4) map.units_.push_back(unit_at(bytes, at));
  map.texts_ = bytes.substr(4 + trie);
  if (!is_valid_utf8(map.texts_)) return damaged();
  return map;
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  if (units_.empty()) return std::nullopt;
  size_t node = offset_of(units_[0]);
  for (const char byte : text) {
    const auto label = static_cast<unsigned char>(byte);
    if (label == 0) return std::nullopt;
    node ^= label;
    if (node >= units_.size()) return std::nullopt;
    const uint32_t unit = units_[node];
    if ((unit & ((1u << 31) | 0xff)) != label) return std::nullopt;
    node ^= offset_of(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (node >= units_.size()) return std::nullopt;
    const size_t begin = units_[node] & ((1u << 31) - 1);
    const bool inside =
        begin < texts_.size() && (static_cast<unsigned char>(texts_[begin]) & 0xC0) != 0x80;
    if (!inside) return std::nullopt;
    return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

}  // namespace loom::core::text
