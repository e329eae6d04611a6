#include "serve/http/http_head.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace loom::core {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return to_lower_ascii(a) == to_lower_ascii(b);
}

// A line break in one of our header values would end the header.
std::string one_line(std::string_view value) {
  std::string out(value);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Without the spaces and tabs around it.
std::string_view trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") + 1 - from);
}

// A name, or an address in brackets, and a port (RFC 3986, without a user).
bool is_authority(std::string_view text) {
  constexpr std::string_view kOfNames = "-._~%!$&'()*+,;=", kOfAddresses = ":.";
  const auto only = [](std::string_view part, std::string_view more) {
    return std::ranges::all_of(part, [&](char c) {
      return is_digit(c) || is_letter(c) || more.find(c) != std::string_view::npos;
    });
  };
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return false;
    const std::string_view address = text.substr(1, end - 1);
    if (address.empty() || !only(address, kOfAddresses)) return false;
    port = text.substr(end + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    if (!only(text.substr(0, colon), kOfNames)) return false;
    port = text.substr(colon);
  }
  return port.empty() || (port.starts_with(':') && std::ranges::all_of(port.substr(1), is_digit));
}

int64_t count_of(const HttpHeaders& headers, std::string_view name) {
  return std::ranges::count_if(
      headers, [&](const auto& header) { return to_lower_ascii(header.first) == name; });
}

std::optional<HttpFault> body_fault(const HttpRequest& request, bool version_11) {
  const int64_t codings = count_of(request.headers, "transfer-encoding");
  const int64_t lengths = count_of(request.headers, "content-length");
  if (codings > 0) {
    if (!version_11)
      return HttpFault{400, "HTTP/1.0 knows no Transfer-Encoding; send HTTP/1.1 or a length"};
    if (lengths > 0)
      return HttpFault{400, "Transfer-Encoding and Content-Length are both given; send one"};
    std::string all;
    for (const auto& [name, value] : request.headers) {
      if (to_lower_ascii(name) == "transfer-encoding") all += (all.empty() ? "" : ",") + value;
    }
    all = to_lower_ascii(all);
    if (codings == 1 && all == "chunked") return std::nullopt;
    const std::string_view last = trimmed(std::string_view(all).substr(all.rfind(',') + 1));
    const bool decodes = last == "chunked" && all.find("chunked") == all.size() - last.size();
    if (decodes) return HttpFault{501, "the only Transfer-Encoding known here is chunked"};
    return HttpFault{400, "Transfer-Encoding must be chunked; the end of the body is not known"};
  }
  if (lengths == 0) return std::nullopt;
  const std::string_view length = request.header("content-length");
  if (lengths == 1 && !length.empty() && std::ranges::all_of(length, is_digit)) return std::nullopt;
  return HttpFault{400, "Content-Length must be given once, in digits"};
}

// Fills path and query.
void split_target(std::string_view text, HttpRequest& request) {
  const size_t mark = text.find('?');
  request.path = percent_decoded(text.substr(0, mark));
  if (mark != std::string_view::npos) request.query = text.substr(mark + 1);
}

// A target with a scheme, as proxies get it: its authority replaces Host.
std::optional<HttpFault> absolute_target(std::string_view text, HttpRequest& request) {
  const size_t end_of_scheme = text.find("://");
  const std::string scheme = to_lower_ascii(text.substr(0, end_of_scheme));
  if (end_of_scheme == std::string_view::npos || (scheme != "http" && scheme != "https"))
    return HttpFault{400, "the target of a request must be a path such as /v1/models"};
  const std::string_view rest = text.substr(end_of_scheme + 3);
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, end);
  if (authority.empty() || authority.starts_with(':') || !is_authority(authority))
    return HttpFault{400, "the target of the request names no valid host; send a path"};
  std::erase_if(request.headers,
                [](const auto& header) { return to_lower_ascii(header.first) == "host"; });
  request.headers.emplace_back("Host", std::string(authority));
  split_target(rest.substr(end), request);
  if (request.path.empty()) request.path = "/";
  return std::nullopt;
}

}  // namespace

std::optional<HttpFault> check_head(HttpRequest& request, HttpTarget target) {
  if (std::optional<HttpFault> fault = body_fault(request, target.version_11)) return fault;
  const int64_t hosts = count_of(request.headers, "host");
  if (hosts > 1) return HttpFault{400, "Host is given more than once; send it once"};
  if (hosts == 0 && target.version_11)
    return HttpFault{400, "HTTP/1.1 needs a Host; send it, or send HTTP/1.0"};
  if (!is_authority(request.header("host")))
    return HttpFault{400, "Host is not a name or an address with a port; send host:port"};
  constexpr std::array<const char*, 4> kOnce = {"Authorization", "Content-Type", "Origin",
                                                "X-Api-Key"};
  for (const char* name : kOnce) {
    if (count_of(request.headers, to_lower_ascii(name)) > 1)
      return HttpFault{400, cat(name, " is given more than once; send it once")};
  }
  if (target.text.find('#') != std::string_view::npos)
    return HttpFault{400, "the target of a request must not hold #; send it without the fragment"};
  if (!target.text.starts_with('/') && !(target.text == "*" && request.method == "OPTIONS"))
    return absolute_target(target.text, request);
  split_target(target.text, request);
  return std::nullopt;
}

std::string percent_decoded(std::string_view text, bool plus) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) {
      out += plus && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string media_type(std::string_view content_type) {
  return to_lower_ascii(trimmed(content_type.substr(0, content_type.find(';'))));
}

std::string_view http_reason(int status) {
  struct Row {
    int status;
    std::string_view words;
  };
  constexpr Row kRows[] = {
      {200, "OK"},
      {201, "Created"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  };
  for (const Row& row : kRows) {
    if (row.status == status) return row.words;
  }
  return "Unknown";
}

std::string http_reply_head(int status, const HttpHeaders& headers, bool keep_alive) {
  std::string out = cat("HTTP/1.1 ", status, " ", http_reason(status), "\r\n");
  for (const auto& [name, value] : headers) out += cat(name, ": ", one_line(value), "\r\n");
  out += keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  return out;
}

std::string http_chunk(std::string_view piece) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string size;
  for (size_t n = piece.size(); n > 0; n /= 16) size.insert(size.begin(), kDigits[n % 16]);
  return cat(size, "\r\n", piece, "\r\n");
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return value;
  }
  return {};
}

void HttpReply::send_pieces(int status, HttpHeaders headers, uint64_t bytes, HttpPieces next) {
  std::string body;
  while (body.size() < bytes) {
    const std::string piece = next();
    if (piece.empty()) break;
    body += piece;
  }
  send(status, std::move(headers), std::move(body));
}

}  // namespace loom::core
