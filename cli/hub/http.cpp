#include "http.hpp"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "../shared/console.hpp"

namespace loom::cli {

struct Http::Impl {
  HttpOptions options;
  CURL* curl = nullptr;
  std::array<char, CURL_ERROR_SIZE> error{};
  // The current request.
  const HttpRequest* request = nullptr;
  HttpReply* reply = nullptr;
  bool begun = false, stopped = false;

  ~Impl() { curl_easy_cleanup(curl); }

  bool begin() {
    if (begun) return !stopped;
    begun = true;
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    reply->status = status;
    if (request->begin && !request->begin(*reply)) stopped = true;
    return !stopped;
  }
};

namespace {

constexpr long kMaxRedirects = 10;
constexpr size_t kMaxHeaders = 1024;

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

std::string trimmed_header(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  const size_t last = text.find_last_not_of(" \t\r\n");
  return first == text.npos ? std::string() : std::string(text.substr(first, last - first + 1));
}

size_t take_header(char* data, size_t one, size_t count, void* user) {
  HttpReply& reply = *static_cast<Http::Impl*>(user)->reply;
  const std::string_view line(data, one * count);
  if (line.starts_with("HTTP/")) reply.headers.clear();  // the next reply of a chain
  const size_t colon = line.find(':');
  if (colon != line.npos && reply.all_headers.size() < kMaxHeaders) {
    const std::string name = lower(line.substr(0, colon));
    reply.headers[name] = trimmed_header(line.substr(colon + 1));
    reply.all_headers[name] = reply.headers[name];
  }
  return line.size();
}

size_t take_body(char* data, size_t one, size_t count, void* user) {
  auto& impl = *static_cast<Http::Impl*>(user);
  const std::string_view bytes(data, one * count);
  if (!impl.begin()) return 0;
  if (impl.request->write && !impl.request->write(bytes)) {
    impl.stopped = true;
    return 0;
  }
  return bytes.size();
}

int stop_on_signal(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return interrupted() ? 1 : 0;
}

curl_socket_t open_socket(void* user, curlsocktype, curl_sockaddr*) {
  const int socket = static_cast<Http::Impl*>(user)->options.socket();
  return socket < 0 ? CURL_SOCKET_BAD : socket;
}

int already_connected(void*, curl_socket_t, curlsocktype) {
  return CURL_SOCKOPT_ALREADY_CONNECTED;
}

void set_up(CURL* curl, Http::Impl* impl, const HttpRequest& request) {
  const bool secure = lower(request.url).starts_with("https:");
  curl_easy_reset(curl);  // keeps the connection
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, impl->error.data());
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(impl->options.stall));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(impl->options.stall));
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, impl);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, impl);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 262144L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, stop_on_signal);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, fmt::format("loom/{}", kVersion).c_str());
  if (impl->options.socket) {
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, impl);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, already_connected);
  }
  if (request.head) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (request.from > 0)
    curl_easy_setopt(curl, CURLOPT_RANGE, fmt::format("{}-", request.from).c_str());
  if (!impl->options.token.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, impl->options.token.c_str());
  }
}

}  // namespace

bool HttpReply::worth_another_try() const {
  return !failure.empty() || status == 408 || status == 429 || status >= 500;
}

std::string HttpReply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

Http::Http(HttpOptions options) : impl_(std::make_unique<Impl>()) {
  start_curl();
  impl_->options = std::move(options);
  impl_->curl = curl_easy_init();
}
Http::Http(Http&&) noexcept = default;
Http::~Http() = default;

HttpReply Http::send(const HttpRequest& request) {
  HttpReply reply;
  CURL* curl = impl_->curl;
  if (curl == nullptr) {
    reply.failure = "libcurl could not be started";
    return reply;
  }
  impl_->request = &request;
  impl_->reply = &reply;
  impl_->begun = impl_->stopped = false;
  impl_->error[0] = '\0';
  set_up(curl, impl_.get(), request);
  curl_slist* extra = nullptr;
  if (request.from > 0 && !request.if_range.empty())
    extra = curl_slist_append(extra, ("If-Range: " + request.if_range).c_str());
  if (extra != nullptr) curl_easy_setopt(curl, CURLOPT_HTTPHEADER, extra);
  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_OK) impl_->begin();  // a reply without a body
  long status = 0;
  curl_off_t retry = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry);
  reply.status = status;
  reply.retry_after = std::max<int64_t>(retry, 0);
  if (code != CURLE_OK && !impl_->stopped)
    reply.failure = impl_->error[0] != '\0' ? impl_->error.data() : curl_easy_strerror(code);
  curl_slist_free_all(extra);
  return reply;
}

std::string Http::escape(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || (keep_slashes && c == '/');
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace loom::cli
