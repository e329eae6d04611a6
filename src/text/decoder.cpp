// Runs the chain. Steps before a fusing one see single tokens. Steps after it see one long token;
// most of them need its end, so they collect it.
#include "text/decoder.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "text/normalizers/byte_alphabet.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte of "<0xHH>", or -1. HF parses the digits with Rust's from_str_radix, which accepts a
// sign.
int named_byte(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  const int low = hex_value(token[4]);
  if (token[3] == '+') return low;
  const int high = hex_value(token[3]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t at = 0;
  for (size_t hit = text.find(from); hit != std::string_view::npos; hit = text.find(from, at)) {
    out += text.substr(at, hit - at);
    out += to;
    at = hit + from.size();
  }
  out += text.substr(at);
  return out;
}

std::string clean_up(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) text = replace_all(text, from, to);
  return text;
}

std::string strip(std::string_view token, char32_t character, size_t start, size_t stop) {
  for (size_t i = 0; i < start && !token.empty(); ++i) {
    const CodePoint c = code_point_at(token, 0);
    if (c.value != character) break;
    token.remove_prefix(c.length);
  }
  for (size_t i = 0; i < stop && !token.empty(); ++i) {
    const CodePoint c = code_point_before(token, token.size());
    if (c.value != character) break;
    token.remove_suffix(c.length);
  }
  return std::string(token);
}

std::string spaces_for(std::string_view token, char32_t character, bool drop) {
  return replace_all(token, utf8(character), drop ? "" : " ");
}

}  // namespace

Result<Decoder> Decoder::make(std::vector<DecoderStep> steps) {
  Decoder decoder;
  bool fused = false;
  for (DecoderStep& spec : steps) {
    Step step{std::move(spec), {}, fused};
    if (step.kind == DecoderKind::replace) {
      LOOM_ASSIGN(step.pattern, Pattern::make(step.find));
    }
    fused = fused || step.kind == DecoderKind::fuse || step.kind == DecoderKind::byte_level;
    decoder.steps_.push_back(std::move(step));
  }
  return decoder;
}

Result<std::string> Decoder::convert(const Step& step, std::string_view token, bool first,
                                     bool last, Budget& budget) {
  switch (step.kind) {
    case DecoderKind::join_spaces: return first ? std::string(token) : cat(" ", token);
    case DecoderKind::metaspace:
      return spaces_for(token, step.character, first && !step.keeps_first);
    case DecoderKind::replace: return step.pattern.replace_all(token, step.content, budget);
    case DecoderKind::strip: return strip(token, step.character, step.start, step.stop);
    case DecoderKind::word_suffix: return replace_all(token, step.content, last ? "" : " ");
    case DecoderKind::word_piece: {
      const bool continues = token.substr(0, step.content.size()) == step.content;
      std::string text(token);
      if (!first) text = continues ? text.substr(step.content.size()) : cat(" ", text);
      return step.cleanup ? clean_up(std::move(text)) : text;
    }
    case DecoderKind::byte_fallback: {
      const int byte = named_byte(token);
      if (byte < 0) return std::string(token);
      return byte < 0x80 ? std::string(1, static_cast<char>(byte)) : std::string(kReplacementChar);
    }
    case DecoderKind::byte_level: {
      std::string bytes;
      ByteAlphabet::get().append_bytes(token, bytes);
      return to_valid_utf8(bytes);
    }
    case DecoderKind::fuse: break;
  }
  return std::string(token);
}

std::string Decoder::token_bytes(std::string_view token) const {
  std::string bytes(token);
  Budget budget = Budget::for_text(token.size());
  for (const Step& step : steps_) {
    if (step.fused || step.kind == DecoderKind::fuse) break;
    if (step.kind == DecoderKind::byte_level) {
      std::string raw;
      ByteAlphabet::get().append_bytes(bytes, raw);
      return raw;
    }
    if (step.kind == DecoderKind::byte_fallback) {
      const int byte = named_byte(bytes);
      if (byte >= 0) return std::string(1, static_cast<char>(byte));
      continue;
    }
    if (step.kind == DecoderKind::join_spaces) break;
    Result<std::string> next = convert(step, bytes, false, false, budget);
    if (!next.ok()) break;
    bytes = std::move(*next);
  }
  return bytes;
}

Status DecodeRun::push(std::string_view token, std::string& out) {
  budget_.extend(token.size());
  return feed(0, token, out);
}

Status DecodeRun::feed(size_t index, std::string_view token, std::string& out) {
  if (index == states_.size()) {
    out += token;
    return {};
  }
  const Decoder::Step& step = decoder_->steps_[index];
  if (step.fused) return feed_fused(index, token, out);
  State& state = states_[index];
  const bool first = std::exchange(state.first, false);
  switch (step.kind) {
    case DecoderKind::fuse: return feed(index + 1, token, out);
    case DecoderKind::byte_fallback: return feed_bytes(index, token, out);
    case DecoderKind::byte_level: {
      ByteAlphabet::get().append_bytes(token, state.held);
      std::string whole;
      drain_utf8(state.held, false, whole);
      return whole.empty() ? Status() : feed(index + 1, whole, out);
    }
    case DecoderKind::word_suffix: {
      const std::string previous = std::exchange(state.held, std::string(token));
      if (!std::exchange(state.holding, true)) return {};
      LOOM_ASSIGN(const std::string text, Decoder::convert(step, previous, false, false, budget_));
      return feed(index + 1, text, out);
    }
    default: break;
  }
  LOOM_ASSIGN(const std::string text, Decoder::convert(step, token, first, false, budget_));
  return feed(index + 1, text, out);
}

// `token` is a part of the one fused token.
Status DecodeRun::feed_fused(size_t index, std::string_view token, std::string& out) {
  const Decoder::Step& step = decoder_->steps_[index];
  State& state = states_[index];
  if (step.kind == DecoderKind::fuse) return feed(index + 1, token, out);
  if (step.kind != DecoderKind::strip || step.stop > 0) {
    state.held += token;
    return {};
  }
  while (state.stripping && !token.empty()) {
    const CodePoint c = code_point_at(token, 0);
    state.stripping = state.stripped < step.start && c.value == step.character;
    if (!state.stripping) break;
    token.remove_prefix(c.length);
    ++state.stripped;
  }
  return feed(index + 1, token, out);
}

// A run of byte tokens is decoded as a whole: one invalid byte makes U+FFFD of each, so the run is
// buffered.
Status DecodeRun::feed_bytes(size_t index, std::string_view token, std::string& out) {
  const int byte = named_byte(token);
  if (byte >= 0) {
    states_[index].held += static_cast<char>(byte);
    return {};
  }
  LOOM_TRY(flush_bytes(index, out));
  return feed(index + 1, token, out);
}

Status DecodeRun::flush_bytes(size_t index, std::string& out) {
  const std::string bytes = std::exchange(states_[index].held, {});
  if (bytes.empty()) return {};
  if (is_valid_utf8(bytes)) return feed(index + 1, bytes, out);
  for (size_t i = 0; i < bytes.size(); ++i) LOOM_TRY(feed(index + 1, kReplacementChar, out));
  return {};
}

Status DecodeRun::finish(std::string& out) {
  for (size_t index = 0; index < states_.size(); ++index) {
    const Decoder::Step& step = decoder_->steps_[index];
    const std::string held = std::exchange(states_[index].held, {});
    if (held.empty() && !states_[index].holding) continue;
    if (!step.fused && step.kind == DecoderKind::byte_fallback) {
      states_[index].held = held;
      LOOM_TRY(flush_bytes(index, out));
    } else if (!step.fused && step.kind == DecoderKind::byte_level) {
      LOOM_TRY(feed(index + 1, to_valid_utf8(held), out));
    } else {
      LOOM_ASSIGN(const std::string text, Decoder::convert(step, held, true, true, budget_));
      LOOM_TRY(feed(index + 1, text, out));
    }
  }
  return {};
}

}  // namespace loom::core::text
