// The boundaries between requests: bytes as from clients and attackers, against the rules of RFC
// 9112 and against a separate parser that shares no code with the server.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "client.hpp"
#include "serve/http/http.hpp"

namespace loom::core::test {
namespace {

// One request as the server parsed it, on one line.
std::string line_of(std::string_view method, std::string_view path, std::string_view host,
                    std::string_view body) {
  return cat(method, " ", path, " @", host, " [", body, "]");
}

class Framing : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<HttpServer>> server = HttpServer::listen(
        "127.0.0.1", 0, {}, [this](const HttpRequest& r, const std::shared_ptr<HttpReply>& reply) {
          {
            const std::lock_guard lock(mutex_);
            handled_.push_back(line_of(r.method, r.path, r.header("Host"), r.body));
          }
          reply->send(200, {}, "");
        });
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->run(); });
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->stop();
    thread_.join();
  }
  std::vector<std::string> handled() {
    const std::lock_guard lock(mutex_);
    return handled_;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    handled_.clear();
  }

  std::mutex mutex_;
  std::vector<std::string> handled_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

std::vector<int> statuses_of(const std::string& replies) {
  std::vector<int> found;
  constexpr std::string_view kBegin = "HTTP/1.1 ";
  for (size_t at = 0; (at = replies.find(kBegin, at)) != std::string::npos; at += kBegin.size()) {
    const int status = std::atoi(replies.c_str() + at + kBegin.size());
    if (status > 0) found.push_back(status);  // else a message that names the version
  }
  return found;
}

const char* const kSecond = "GET /second HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

TEST_F(Framing, ABodyHasOneEndOrTheRequestIsRefusedAndTheConnectionCloses) {
  struct Row {
    const char* headers;  // after Host; the body follows
    const char* body;
    int status;
    const char* handled_lines = "";
  };
  const Row rows[] = {
      {"Transfer-Encoding: xchunked\r\n", "", 400},
      {"Transfer-Encoding: identity\r\n", "", 400},
      {"Transfer-Encoding: chunked, gzip\r\n", "", 400},
      {"Transfer-Encoding: \"chunked\"\r\n", "", 400},
      {"Transfer-Encoding: chunked;q=1\r\n", "", 400},
      {"Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n", 400},
      {"Transfer-Encoding:\r\n", "", 400},
      {"Transfer-Encoding: ,\r\n", "", 400},
      {"Transfer-Encoding: chunked\r\n x\r\n", "0\r\n\r\n", 400},
      {"Transfer-Encoding: \x0b"
       "chunked\r\n",
       "0\r\n\r\n", 400},
      {"Transfer-Encoding : chunked\r\n", "0\r\n\r\n", 400},
      {"Transfer-Encoding\t: chunked\r\n", "0\r\n\r\n", 400},
      {"Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", 501},
      {"Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 501},
      {"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 501},
      {"Transfer-Encoding: Chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", 200, "hello"},
      {"Transfer-Encoding:\tchunked \r\n", "05\r\nhello\r\n000\r\n\r\n", 200, "hello"},
      {"Transfer-Encoding: chunked\r\n", "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n", 200, "hello"},
      {"Transfer-Encoding: chunked\r\n", "+5\r\nhello\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n", "0x5\r\nhello\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n", "5\nhello\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n", "5 \r\nhello\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n", "5\r\nhelloX\r\n0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\n", "10000000000000005\r\nhello\r\n0\r\n\r\n", 400},
      {"Content-Length: 5\r\n", "hello", 200, "hello"},
      {"Content-Length: 05\r\n", "hello", 200, "hello"},
      {"Content-Length: +5\r\n", "hello", 400},
      {"Content-Length: -5\r\n", "hello", 400},
      {"Content-Length: 5.0\r\n", "hello", 400},
      {"Content-Length: 0x5\r\n", "hello", 400},
      {"Content-Length: 5 5\r\n", "hello", 400},
      {"Content-Length: 5,\r\n", "hello", 400},
      {"Content-Length: 5, 6\r\n", "hello", 400},
      {"Content-Length:\r\n", "", 400},
      {"Content-Length: 18446744073709551621\r\n", "hello", 400},
      {"Content-Length : 5\r\n", "hello", 400},
      {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 400},
      {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n", 400},
      {"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n", "hello", 400},
      {"X: a\nContent-Length: 5\r\n", "", 400},
      {"X: a\rContent-Length: 5\r\n", "", 400},
      {"X: a\r\n b\r\nContent-Length: 5\r\n", "hello", 200, "hello"},
      {"Content-Type: a/b\r\nContent-Type: c/d\r\n", "", 400},
      {"Authorization: a\r\nauthorization: b\r\n", "", 400},
  };
  for (const Row& row : rows) {
    forget();
    Socket socket(server_->port());
    socket.send(cat("POST /first HTTP/1.1\r\nHost: h\r\n", row.headers, "\r\n", row.body, kSecond));
    const std::string replies = socket.receive_all();
    EXPECT_TRUE(socket.ended()) << row.headers;
    const std::vector<int> expected =
        row.status == 200 ? std::vector<int>{200, 200} : std::vector<int>{row.status};
    EXPECT_EQ(statuses_of(replies), expected) << row.headers << row.body << "\n" << replies;
    const std::vector<std::string> handled_lines =
        row.status == 200
            ? std::vector<std::string>{line_of("POST", "/first", "h", row.handled_lines),
                                       line_of("GET", "/second", "h", "")}
            : std::vector<std::string>{};
    EXPECT_EQ(handled(), handled_lines) << row.headers << row.body;
  }
}

TEST_F(Framing, ARequestNamesOneHostAndAPath) {
  struct Row {
    const char* line;  // the request line
    const char* hosts;
    int status;
    const char* handled_lines = "";
  };
  const Row rows[] = {
      {"GET /a HTTP/1.1", "Host: h:80\r\n", 200, "GET /a @h:80 []"},
      {"GET /a HTTP/1.1", "Host: [::1]:80\r\n", 200, "GET /a @[::1]:80 []"},
      {"GET /a HTTP/1.1", "Host:\r\n", 200, "GET /a @ []"},
      {"GET /a HTTP/1.1", "", 400},
      {"GET /a HTTP/1.0", "", 200, "GET /a @ []"},
      {"GET /a HTTP/1.0", "Host: a\r\nHost: b\r\n", 400},
      {"GET /a HTTP/1.0", "Transfer-Encoding: chunked\r\n", 400},
      {"GET /a HTTP/1.1", "Host: a\r\nHost: b\r\n", 400},
      {"GET /a HTTP/1.1", "Host: a\r\nHost: a\r\n", 400},
      {"GET /a HTTP/1.1", "Host: a\r\nhOST: a\r\n", 400},
      {"GET /a HTTP/1.1", "Host: a b\r\n", 400},
      {"GET /a HTTP/1.1", "Host: user@a\r\n", 400},
      {"GET /a HTTP/1.1", "Host: a/b\r\n", 400},
      {"GET /a HTTP/1.1", "Host: a:b\r\n", 400},
      {"GET /a HTTP/1.1", "Host: [::1\r\n", 400},
      {"GET /a HTTP/1.1", "Host: a\r\n X: b\r\n", 400},
      {"GET http://other:1/a?b HTTP/1.1", "Host: h\r\n", 200, "GET /a @other:1 []"},
      {"GET HTTP://[::1]/a HTTP/1.1", "Host: h\r\n", 200, "GET /a @[::1] []"},
      {"GET http://other HTTP/1.1", "Host: h\r\n", 200, "GET / @other []"},
      {"GET http://other?b HTTP/1.1", "Host: h\r\n", 200, "GET / @other []"},
      {"GET http://other/a HTTP/1.1", "", 400},
      {"GET http:///a HTTP/1.1", "Host: h\r\n", 400},
      {"GET http://:80/a HTTP/1.1", "Host: h\r\n", 400},
      {"GET http://u@other/a HTTP/1.1", "Host: h\r\n", 400},
      {"GET ftp://other/a HTTP/1.1", "Host: h\r\n", 400},
      {"GET a HTTP/1.1", "Host: h\r\n", 400},
      {"GET /a#b HTTP/1.1", "Host: h\r\n", 400},
      {"GET * HTTP/1.1", "Host: h\r\n", 400},
      {"OPTIONS * HTTP/1.1", "Host: h\r\n", 200, "OPTIONS * @h []"},
      {"CONNECT other:80 HTTP/1.1", "Host: h\r\n", 400},
      {"GET  /a HTTP/1.1", "Host: h\r\n", 400},
      {"GET /a  HTTP/1.1", "Host: h\r\n", 505},
      {"GET /a HTTP/1.1 ", "Host: h\r\n", 505},
      {"GET /a http/1.1", "Host: h\r\n", 505},
      {"GET /a HTTP/1.2", "Host: h\r\n", 505},
      {"G\tT /a HTTP/1.1", "Host: h\r\n", 400},
  };
  for (const Row& row : rows) {
    forget();
    Socket socket(server_->port());
    socket.send(cat(row.line, "\r\n", row.hosts, "Connection: close\r\n\r\n"));
    EXPECT_EQ(statuses_of(socket.receive_all()), std::vector<int>{row.status}) << row.line << "\n"
                                                                               << row.hosts;
    EXPECT_TRUE(socket.ended());
    EXPECT_EQ(handled(), row.status == 200 ? std::vector<std::string>{row.handled_lines}
                                           : std::vector<std::string>{})
        << row.line;
  }
}

// Headers after a chunked body could otherwise change the identity of the client.
TEST_F(Framing, HeadersAfterABodyInChunksAreDropped) {
  Socket socket(server_->port());
  socket.send(
      cat("POST /first HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
          "2\r\nhi\r\n0\r\nHost: evil\r\nAuthorization: Bearer x\r\n\r\n",
          kSecond));
  EXPECT_EQ(statuses_of(socket.receive_all()), (std::vector<int>{200, 200}));
  EXPECT_EQ(handled().front(), line_of("POST", "/first", "h", "hi"));
}

// The error line arrives although the client continues to send.
TEST_F(Framing, ARefusedClientThatGoesOnSendingReadsWhy) {
  Socket socket(server_->port());
  socket.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 99000000\r\n\r\n");
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(socket.send(piece)) << i;
  EXPECT_EQ(statuses_of(socket.receive_all()), std::vector<int>{413});
}

// ---- random requests, against another parser ----------------------------------------------------

struct Reading {
  std::vector<std::string> handled;
  enum class End { waits, closes, refused } end = End::waits;
};

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at; (at = text.find(by, from)) != std::string::npos; from = at + by.size())
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return parts;
}

std::string stripped(std::string text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.erase(0, 1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
  return text;
}

bool has_only(const std::string& text, const char* of) {
  return text.find_first_not_of(of) == std::string::npos;
}

const char* const kName =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";

// Fields by lower-case name; none if a line is not one.
std::optional<HttpHeaders> fields_of(const std::string& block) {
  HttpHeaders fields;
  for (const std::string& line : split(block, "\r\n")) {
    if (line.find_first_of("\r\n") != std::string::npos) return std::nullopt;
    if (!line.empty() && (line[0] == ' ' || line[0] == '\t')) {
      if (fields.empty()) return std::nullopt;
      std::string& value = fields.back().second;
      value = stripped(value + " " + stripped(line));
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0) return std::nullopt;
    const std::string name = line.substr(0, colon);
    if (!has_only(name, kName)) return std::nullopt;
    fields.emplace_back(to_lower_ascii(name), stripped(line.substr(colon + 1)));
  }
  return fields;
}

std::vector<std::string> values_of(const HttpHeaders& fields, const std::string& name) {
  std::vector<std::string> values;
  for (const auto& [key, value] : fields) {
    if (key == name) values.push_back(value);
  }
  return values;
}

enum class Chunks { whole, cut, bad };

// Takes a body in chunks from `bytes` at `at`.
Chunks read_chunks(const std::string& bytes, size_t& at, std::string& body) {
  for (;;) {
    const size_t end = bytes.find("\r\n", at);
    if (end == std::string::npos) return Chunks::cut;
    const std::string line = bytes.substr(at, end - at);
    std::string size = line.substr(0, line.find(';'));
    if (size.size() != line.size()) {
      size = stripped(size);
      const std::string extension = stripped(line.substr(line.find(';') + 1));
      const size_t equals = std::min(extension.find('='), extension.size());
      const std::string value = extension.substr(std::min(extension.size(), equals + 1));
      if (equals == 0 || !has_only(extension.substr(0, equals), kName) || !has_only(value, kName) ||
          (equals < extension.size() && value.empty()))
        return Chunks::bad;
    }
    if (size.empty() || size.size() > 8 || !has_only(size, "0123456789abcdefABCDEF"))
      return Chunks::bad;
    const size_t length = std::strtoul(size.c_str(), nullptr, 16);
    at = end + 2;
    if (length == 0) break;
    if (bytes.size() < at + length + 2) return Chunks::cut;
    body += bytes.substr(at, length);
    at += length;
    if (bytes.substr(at, 2) != "\r\n") return Chunks::bad;
    at += 2;
  }
  if (bytes.substr(at, 2) == "\r\n") {
    at += 2;
    return Chunks::whole;
  }
  const size_t end = bytes.find("\r\n\r\n", at);
  if (end == std::string::npos) return Chunks::cut;
  const std::optional<HttpHeaders> trailers = fields_of(bytes.substr(at, end - at));
  at = end + 4;
  if (!trailers || !values_of(*trailers, "content-length").empty() ||
      !values_of(*trailers, "transfer-encoding").empty())
    return Chunks::bad;
  return Chunks::whole;
}

bool is_host(const std::string& text) {
  const std::vector<std::string> parts = split(text, ":");
  return parts.size() <= 2 && has_only(parts[0], "abcdefghijklmnopqrstuvwxyz0123456789.-,") &&
         (parts.size() == 1 || has_only(parts[1], "0123456789"));
}

Reading read(const std::string& bytes) {
  Reading out;
  const auto refuse = [&] {
    out.end = Reading::End::refused;
    return out;
  };
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = bytes.find("\r\n\r\n", at);
    if (end == std::string::npos) return out;
    const size_t first = bytes.find("\r\n", at);
    const std::vector<std::string> words = split(bytes.substr(at, first - at), " ");
    if (words.size() != 3 || !has_only(words[0], kName) ||
        words[1].find_first_of("\r\n\t#") != std::string::npos)
      return refuse();
    const bool version_11 = words[2] == "HTTP/1.1";
    if (!version_11 && words[2] != "HTTP/1.0") return refuse();
    HttpHeaders fields;
    if (first < end) {
      const std::optional<HttpHeaders> read = fields_of(bytes.substr(first + 2, end - first - 2));
      if (!read) return refuse();
      fields = *read;
    }
    at = end + 4;
    const std::vector<std::string> hosts = values_of(fields, "host");
    if (hosts.size() > 1 || (hosts.empty() && version_11)) return refuse();
    std::string host = hosts.empty() ? "" : hosts[0], path = words[1];
    if (!is_host(host)) return refuse();
    if (path[0] != '/') {
      if (!path.starts_with("http://")) return refuse();
      const std::string rest = path.substr(7);
      const size_t slash = std::min(rest.find('/'), rest.size());
      host = rest.substr(0, slash);
      if (host.empty() || !is_host(host)) return refuse();
      path = slash == rest.size() ? "/" : rest.substr(slash);
    }
    path = path.substr(0, path.find('?'));
    const std::vector<std::string> codings = values_of(fields, "transfer-encoding");
    const std::vector<std::string> lengths = values_of(fields, "content-length");
    std::string body;
    if (!codings.empty()) {
      if (!version_11 || !lengths.empty() || codings.size() > 1 ||
          to_lower_ascii(codings[0]) != "chunked")
        return refuse();
      const Chunks chunks = read_chunks(bytes, at, body);
      if (chunks == Chunks::cut) return out;
      if (chunks == Chunks::bad) return refuse();
    } else if (!lengths.empty()) {
      if (lengths.size() > 1 || lengths[0].empty() || lengths[0].size() > 6 ||
          !has_only(lengths[0], "0123456789"))
        return refuse();
      const size_t length = std::strtoul(lengths[0].c_str(), nullptr, 10);
      if (bytes.size() < at + length) return out;
      body = bytes.substr(at, length);
      at += length;
    }
    out.handled.push_back(line_of(words[0], path, host, body));
    const std::vector<std::string> wishes = values_of(fields, "connection");
    if (!version_11 || (!wishes.empty() && wishes[0] == "close")) {
      out.end = Reading::End::closes;
      return out;
    }
  }
  return out;
}

class Requests {
 public:
  explicit Requests(unsigned seed) : random_(seed) {}
  // One to three requests, and one that asks the server to close.
  std::string next() {
    std::string all;
    for (size_t k = 1 + random_() % 3; k > 0; --k) all += one();
    return all + "GET /end HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
  }

 private:
  template <size_t N>
  std::string pick(const char* const (&from)[N], unsigned usual) {
    return from[random_() % usual != 0 ? 0 : random_() % N];
  }
  std::string field(const std::string& name, const std::string& value) {
    static const char* const kColons[] = {": ", ":", ":\t", " : ", " "};
    static const char* const kEnds[] = {"\r\n", "\n", "\r", " \r\n", "\r\n x\r\n", "\r\n \r\n"};
    return name + pick(kColons, 12) + value + pick(kEnds, 20);
  }
  std::string one() {
    static const char* const kTargets[] = {"/a",        "/a?b=c",   "http://g/x", "http://g:8",
                                           "http:///x", "ftp://g/", "/a#b",       "a"};
    static const char* const kVersions[] = {"HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "http/1.1"};
    static const char* const kHosts[] = {"h", "h:80", "a b", "u@h", "", "h:x"};
    static const char* const kCodings[] = {
        "chunked",          "Chunked",     "xchunked",          "identity",    "chunked, gzip",
        "gzip, chunked",    "\"chunked\"", "chunked;a=b",       ", chunked",   "",
        "chunked, chunked", "chunked ",    "identity, chunked", "chunked\r\n", "chunked\r\n gzip"};
    static const char* const kLengths[] = {"5",   "+5", "05",  "5, 5", "5,",  "",
                                           "0x5", "-1", " 5 ", "5 5",  "5.0", "000"};
    static const char* const kSizes[] = {"5",  "05", "5;x=y", "5 ", "0x5",
                                         "+5", "5;", "5 ;x",  "-5", ""};
    static const char* const kEnds[] = {"\r\n", "\n", "\r", "", "X\r\n"};
    static const char* const kLast[] = {"0\r\n\r\n",
                                        "00\r\n\r\n",
                                        "0;a\r\nX: y\r\n\r\n",
                                        "0\r\nContent-Length: 3\r\n\r\n",
                                        "0\r\nHost: e\r\n\r\n",
                                        "0\n\n",
                                        "0\r\n"};
    std::vector<std::string> lines;
    if (random_() % 20 != 0) lines.push_back(field("Host", pick(kHosts, 10)));
    if (random_() % 30 == 0) lines.push_back(field("hOST", "h"));
    if (random_() % 5 == 0) lines.push_back(field("X-Y", "z"));
    std::string body;
    const unsigned kind = random_() % 8;
    if (kind < 3 || kind == 7) {
      lines.push_back(field("Content-Length", pick(kLengths, 4)));
      if (random_() % 8 == 0) lines.push_back(field("content-length", "5"));
      body = "hello";
    }
    if (kind >= 3 && kind != 6) {
      lines.push_back(field("Transfer-Encoding", pick(kCodings, 3)));
      if (random_() % 10 == 0) lines.push_back(field("Transfer-Encoding", pick(kCodings, 2)));
      body = pick(kSizes, 4) + pick(kEnds, 8) + "hello" + pick(kEnds, 8) + pick(kLast, 4);
    }
    std::shuffle(lines.begin(), lines.end(), random_);
    std::string all =
        cat(body.empty() ? "GET " : "POST ", pick(kTargets, 6), " ", pick(kVersions, 16), "\r\n");
    for (const std::string& line : lines) all += line;
    return all + "\r\n" + body;
  }
  std::mt19937 random_;
};

// LOOM_HTTP_CASES sets their number; 400 is the default.
TEST_F(Framing, RandomRequestsAreReadAsAnotherParserReadsThem) {
  const char* asked = std::getenv("LOOM_HTTP_CASES");
  const int rounds = asked != nullptr ? std::atoi(asked) : 400;
  Requests requests(24);
  int refused = 0, whole = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string bytes = requests.next();
    const Reading expected = read(bytes);
    forget();
    Socket socket(server_->port());
    socket.send(bytes);
    if (expected.end == Reading::End::waits) {
      EXPECT_TRUE(wait_until([&] { return handled().size() >= expected.handled.size(); })) << bytes;
    } else {
      const std::vector<int> statuses = statuses_of(socket.receive_all());
      const bool refuses = expected.end == Reading::End::refused;
      ASSERT_TRUE(socket.ended()) << bytes;
      EXPECT_EQ(statuses.size(), expected.handled.size() + (refuses ? 1 : 0)) << bytes;
      EXPECT_EQ(!statuses.empty() && statuses.back() >= 400, refuses) << bytes;
      ++(refuses ? refused : whole);
    }
    ASSERT_EQ(handled(), expected.handled) << "case " << round << ":\n" << bytes;
  }
  EXPECT_GT(refused, rounds / 10);
  EXPECT_GT(whole, rounds / 10);
}

}  // namespace
}  // namespace loom::core::test
