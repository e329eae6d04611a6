// A reply as bytes of HTTP/1.1, written by a connection: whole, or in chunks if the client supports
// them. Also the base of replies that forward to another. No sockets here.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/threads/try_again.hpp"
#include "serve/http/http.hpp"
#include "serve/http/http_head.hpp"

namespace loom::core {

// Bytes counted as waiting, released again if they cannot be posted.
struct WaitingBytes {
  std::atomic<uint64_t>& waiting;
  uint64_t count;
  ~WaitingBytes() { waiting -= count; }
};

// `Connection` writes answers in the order of their requests (http.cpp).
template <class Connection>
class HttpReplyOver final : public HttpReply {
 public:
  HttpReplyOver(std::shared_ptr<Connection> connection, uint64_t number)
      : connection_(std::move(connection)), number_(number) {}
  // A handler that forgot its reply must not leave the client waiting.
  ~HttpReplyOver() override {
    if (!begun_) try_again([this] { send(500, {}, ""); });
    if (!ended_) try_again([this] { connection_->abandon(number_); });
  }
  // Those below either throw std::bad_alloc and have done nothing, or are done.
  void send(int status, HttpHeaders headers, std::string body) override {
    if (begun_) return;
    const bool bodiless = status == 204 || status == 304;  // RFC 9110, 8.6
    if (!bodiless) headers.emplace_back("Content-Length", std::to_string(body.size()));
    std::string bytes = http_reply_head(status, headers, connection_->keeps_alive()) + "\r\n";
    if (!connection_->without_body()) bytes += body;
    connection_->answer(number_, std::move(bytes), true);
    begun_ = ended_ = true;
  }
  void send_pieces(int status, HttpHeaders headers, uint64_t bytes, HttpPieces next) override {
    if (begun_) return;
    headers.emplace_back("Content-Length", std::to_string(bytes));
    std::string head = http_reply_head(status, headers, connection_->keeps_alive()) + "\r\n";
    if (bytes == 0 || connection_->without_body()) {
      connection_->answer(number_, std::move(head), true);
    } else {
      connection_->answer(number_, std::move(head), false, std::move(next), bytes);
    }
    begun_ = ended_ = true;
  }
  void begin(int status, HttpHeaders headers) override {
    if (begun_) return;
    if (connection_->chunked()) headers.emplace_back("Transfer-Encoding", "chunked");
    connection_->answer(
        number_, http_reply_head(status, headers, connection_->keeps_alive()) + "\r\n", false);
    begun_ = true;
  }
  void write(std::string piece) override {
    if (piece.empty() || ended_ || connection_->without_body()) return;
    connection_->answer(number_, connection_->chunked() ? http_chunk(piece) : std::move(piece),
                        false);
  }
  void end() override {
    if (!begun_ || ended_) return;
    const bool mark = connection_->chunked() && !connection_->without_body();
    connection_->answer(number_, mark ? "0\r\n\r\n" : "", true);
    ended_ = true;
  }
  bool gone() const override { return connection_->lost() || connection_->too_slow(); }

 private:
  std::shared_ptr<Connection> connection_;
  uint64_t number_;
  bool begun_ = false, ended_ = false;
};

// A reply that passes everything on to another.
class ForwardingReply : public HttpReply {
 public:
  explicit ForwardingReply(std::shared_ptr<HttpReply> reply) : reply_(std::move(reply)) {}
  void send(int status, HttpHeaders headers, std::string body) override {
    reply_->send(status, std::move(headers), std::move(body));
  }
  void send_pieces(int status, HttpHeaders headers, uint64_t bytes, HttpPieces next) override {
    reply_->send_pieces(status, std::move(headers), bytes, std::move(next));
  }
  void begin(int status, HttpHeaders headers) override {
    reply_->begin(status, std::move(headers));
  }
  void write(std::string piece) override { reply_->write(std::move(piece)); }
  void end() override { reply_->end(); }
  bool gone() const override { return reply_->gone(); }
  std::string_view caller() const override { return reply_->caller(); }
  void report_field(const char* name, int64_t value) override { reply_->report_field(name, value); }

 protected:
  std::shared_ptr<HttpReply> reply_;
};

}  // namespace loom::core
