// Each set refines the runs: a symbol with code points on both sides is split in two.
#include "text/models/symbol_map.hpp"

#include <algorithm>

#include "text/normalizers/unicode.hpp"

namespace loom::core::text {
namespace {

constexpr uint8_t kNewline = '\n';

// Symbol number n: in order, skipping the newline's.
uint8_t numbered(size_t n) {
  return static_cast<uint8_t>(n < kNewline ? n : n + 1);
}

}  // namespace

SymbolMap::SymbolMap()
    : runs_{{0, numbered(0)}, {kNewline, kNewline}, {kNewline + 1, numbered(0)}}, used_(1) {}

bool SymbolMap::add(const CharSet& set) {
  // Split the runs at the ends of the set.
  std::vector<Run> cut;
  std::vector<bool> inside;
  const auto ranges = set.ranges();
  size_t next = 0;  // boundary 2i: the start of range i; 2i + 1: after its end
  const auto boundary = [&](size_t i) {
    return i % 2 == 0 ? ranges[i / 2].first : ranges[i / 2].last + 1;
  };
  const size_t boundaries = 2 * ranges.size();
  for (size_t i = 0; i < runs_.size(); ++i) {
    const char32_t end = i + 1 < runs_.size() ? runs_[i + 1].first : 0x110000;
    while (next < boundaries && boundary(next) <= runs_[i].first) ++next;
    cut.push_back(runs_[i]);
    inside.push_back(next % 2 == 1);
    for (; next < boundaries && boundary(next) < end; ++next) {
      cut.push_back({boundary(next), runs_[i].symbol});
      inside.push_back(next % 2 == 0);
    }
  }
  std::array<bool, 256> has_in{}, has_out{};
  for (size_t i = 0; i < cut.size(); ++i) (inside[i] ? has_in : has_out)[cut[i].symbol] = true;
  std::array<uint8_t, 256> renamed{};  // new number of the part inside
  for (size_t s = 0; s < 256; ++s) {
    renamed[s] = static_cast<uint8_t>(s);
    if (!has_in[s] || !has_out[s]) continue;
    if (used_ == 255) return false;
    renamed[s] = numbered(used_++);
  }
  runs_.clear();
  for (size_t i = 0; i < cut.size(); ++i) {
    const uint8_t symbol = inside[i] ? renamed[cut[i].symbol] : cut[i].symbol;
    if (runs_.empty() || runs_.back().symbol != symbol) runs_.push_back({cut[i].first, symbol});
  }
  return true;
}

std::bitset<256> SymbolMap::symbols(const CharSet& set) const {
  std::bitset<256> out;
  for (const Run& run : runs_) {
    if (set.contains(run.first)) out.set(run.symbol);
  }
  return out;
}

uint8_t SymbolMap::find(char32_t c) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), c,
                                      [](char32_t v, const Run& run) { return v < run.first; });
  return (after - 1)->symbol;
}

void SymbolMap::finish() {
  for (size_t c = 0; c < small_.size(); ++c) small_[c] = find(static_cast<char32_t>(c));
}

std::string SymbolMap::translate(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    out += static_cast<char>(c.value < small_.size() ? small_[c.value] : find(c.value));
    at += c.length;
  }
  return out;
}

}  // namespace loom::core::text
