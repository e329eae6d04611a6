// A second, naive reader of the ends of HTTP/1.1 requests and replies. It follows RFC 9112 alone
// and shares no code with the server. It reads requests leniently, so every request of the server
// must be one here as well, with the same body.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"

namespace loom_fuzz {

using Fields = std::vector<std::pair<std::string, std::string>>;  // names in small letters

struct Framed {
  std::string method, target, body;
  bool closes = false;   // nothing after it is a request
  bool certain = false;  // no server may refuse it
};

enum class Next { request, incomplete, wrong };

inline std::string small(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

inline std::string_view stripped(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

inline bool only(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == text.npos;
}

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHex = "0123456789abcdefABCDEF";
constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kPlain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";

// The lines of a head, with folded lines joined.
inline std::vector<std::string> head_lines(std::string_view head, bool& folded) {
  std::vector<std::string> out;
  while (!head.empty()) {
    const size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const bool goes_on = !line.empty() && (line[0] == ' ' || line[0] == '\t') && !out.empty();
    folded = folded || goes_on;
    if (goes_on) {
      out.back() += " ";
      out.back() += stripped(line);
    } else {
      out.emplace_back(line);
    }
  }
  return out;
}

inline std::vector<std::string> values_of(const Fields& fields, std::string_view name) {
  std::vector<std::string> out;
  for (const auto& [n, value] : fields)
    if (n == name) out.push_back(value);
  return out;
}

// Is `token` in a list between commas?
inline bool has_token(const std::vector<std::string>& values, std::string_view token) {
  for (std::string_view list : values) {
    for (;;) {
      const size_t end = std::min(list.find(','), list.size());
      if (small(stripped(list.substr(0, end))) == token) return true;
      if (end == list.size()) break;
      list.remove_prefix(end + 1);
    }
  }
  return false;
}

// Bytes of a chunked body from `at` on. `plain`: without extensions and trailers.
inline Next take_chunks(std::string_view all, size_t& at, std::string& body, bool& plain) {
  for (;;) {
    const size_t line = all.find("\r\n", at);
    if (line == all.npos) return Next::incomplete;
    const std::string_view text = all.substr(at, line - at);
    const std::string_view digits =
        text.substr(0, std::min(text.find_first_not_of(kHex), text.size()));
    plain = plain && digits.size() == text.size() && digits.size() <= 6;
    if (digits.empty() || digits.size() > 15) return Next::wrong;
    const size_t size = std::stoull(std::string(digits), nullptr, 16);
    at = line + 2;
    if (size == 0) break;
    if (all.size() - at < size || all.size() - at - size < 2) return Next::incomplete;
    body += all.substr(at, size);
    if (all.substr(at + size, 2) != "\r\n") return Next::wrong;
    at += size + 2;
  }
  for (;;) {  // trailers
    const size_t line = all.find("\r\n", at);
    if (line == all.npos) return Next::incomplete;
    const bool last = line == at;
    at = line + 2;
    if (last) return Next::request;
    plain = false;
  }
}

// Headers that no server may object to.
inline bool harmless(const Fields& fields) {
  const auto hosts = values_of(fields, "host");
  if (hosts.size() != 1 || hosts[0].empty() || !only(hosts[0], kPlain)) return false;
  for (const auto& [name, value] : fields) {
    if (name.empty() || !only(name, kPlain) || value.size() > 200) return false;
    for (const char c : value)
      if (c < 0x20 || c > 0x7e) return false;
    if (name == "expect" || name == "upgrade" || name == "te" || name == "trailer" ||
        name == "proxy-connection")
      return false;
    if (name == "connection" && value != "close" && value != "keep-alive") return false;
    if (name != "accept" && values_of(fields, name).size() > 1) return false;
  }
  return true;
}

inline Next take_body(std::string_view all, size_t& at, const Fields& fields, bool version_11,
                      Framed& out) {
  const auto codings = values_of(fields, "transfer-encoding");
  const auto lengths = values_of(fields, "content-length");
  if (!codings.empty()) {
    if (!version_11 || !lengths.empty() || codings.size() > 1 || small(codings[0]) != "chunked")
      return Next::wrong;
    return take_chunks(all, at, out.body, out.certain);
  }
  if (lengths.empty()) return Next::request;
  if (lengths.size() > 1 || lengths[0].empty() || !only(lengths[0], kDigits)) return Next::wrong;
  if (lengths[0].size() > 9) return Next::incomplete;
  const size_t size = std::stoull(lengths[0]);
  if (all.size() - at < size) return Next::incomplete;
  out.certain = out.certain && lengths[0].size() <= 5;
  out.body = all.substr(at, size);
  at += size;
  return Next::request;
}

// The request at `at`, which moves to its end.
inline Next take_request(std::string_view all, size_t& at, Framed& out) {
  const size_t begin = at;
  while (all.substr(at, 2) == "\r\n") at += 2;
  const bool at_once = at == begin;  // empty lines before it should be passed over, no more
  const size_t end = all.find("\r\n\r\n", at);
  if (end == all.npos) return Next::incomplete;
  bool folded = false;
  const std::vector<std::string> lines = head_lines(all.substr(at, end - at), folded);
  at = end + 4;
  if (lines.empty()) return Next::wrong;
  const std::string& first = lines[0];
  const size_t a = first.find(' '), b = a == first.npos ? a : first.find(' ', a + 1);
  if (b == first.npos) return Next::wrong;
  out.method = first.substr(0, a);
  out.target = first.substr(a + 1, b - a - 1);
  const std::string version = first.substr(b + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return Next::wrong;
  Fields fields;
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == std::string::npos) return Next::wrong;
    fields.emplace_back(small(std::string_view(lines[i]).substr(0, colon)),
                        stripped(std::string_view(lines[i]).substr(colon + 1)));
  }
  out.closes = version == "HTTP/1.0" || has_token(values_of(fields, "connection"), "close");
  out.certain = at_once && version == "HTTP/1.1" && !folded && !out.method.empty() &&
                out.method.size() <= 16 && only(out.method, kUpper) && out.target[0] == '/' &&
                only(out.target.substr(1), kPlain) && harmless(fields) && end < 8000;
  return take_body(all, at, fields, version == "HTTP/1.1", out);
}

// ---- replies ------------------------------------------------------------------------------------

struct FramedReply {
  int status = 0;
  Fields fields;
  std::string body;
  bool closes = false;
  bool whole = false;  // false: it is cut
};

inline size_t size_in(std::string_view text, size_t max_digits) {
  CHECK(!text.empty() && text.size() <= max_digits && only(text, kDigits));
  return std::stoull(std::string(text));
}

inline void take_reply_body(std::string_view& bytes, bool head_only, FramedReply& out) {
  const auto lengths = values_of(out.fields, "content-length");
  const auto codings = values_of(out.fields, "transfer-encoding");
  CHECK(lengths.size() + codings.size() <= 1);
  if (head_only) {
    out.whole = true;
  } else if (!lengths.empty()) {
    const size_t size = size_in(lengths[0], 9);
    out.whole = bytes.size() >= size;
    out.body = bytes.substr(0, size);
    bytes.remove_prefix(out.body.size());
  } else if (!codings.empty()) {
    CHECK(codings[0] == "chunked");
    size_t at = 0;
    bool plain = true;
    const Next next = take_chunks(bytes, at, out.body, plain);
    CHECK(next != Next::wrong && plain);
    out.whole = next == Next::request;
    bytes.remove_prefix(out.whole ? at : bytes.size());
  } else {
    CHECK(out.closes);  // the end of the connection is the end of the body
    out.whole = true;
    out.body = bytes;
    bytes = {};
  }
}

// The reply at the beginning of `bytes`, which is removed from there.
inline FramedReply take_reply(std::string_view& bytes, bool head_only) {
  FramedReply out;
  const size_t end = bytes.find("\r\n\r\n");
  CHECK(end != bytes.npos);
  bool folded = false;
  const std::vector<std::string> lines = head_lines(bytes.substr(0, end), folded);
  bytes.remove_prefix(end + 4);
  CHECK(!folded && !lines.empty());
  const std::string_view first = lines[0];
  CHECK(first.starts_with("HTTP/1.1 ") && first.size() > 13 && first[12] == ' ');
  out.status = static_cast<int>(size_in(first.substr(9, 3), 3));
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(": ");
    CHECK(colon != std::string::npos && colon > 0);
    const std::string_view name = std::string_view(lines[i]).substr(0, colon);
    CHECK(only(name, kPlain));
    for (const char c : lines[i]) CHECK(static_cast<unsigned char>(c) >= 0x20);
    out.fields.emplace_back(small(name), lines[i].substr(colon + 2));
  }
  out.closes = has_token(values_of(out.fields, "connection"), "close");
  take_reply_body(bytes, head_only, out);
  return out;
}

}  // namespace loom_fuzz
