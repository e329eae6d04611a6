#include "serve/http/http.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "base/result.hpp"
#include "base/text.hpp"
#include "base/threads/try_again.hpp"
#include "net/give_way.hpp"
#include "net/stream.hpp"
#include "serve/http/http_reply.hpp"
#include "serve/http/http_sockets.hpp"

namespace loom::core {

namespace http = boost::beast::http;

namespace {

// The error reply to a request that Beast cannot parse.
HttpFault fault_of(const NetError& why, const HttpLimits& limits) {
  if (why == http::error::body_limit)
    return {413, cat("a body may have ", limits.body_bytes, " bytes; send less")};
  if (why == http::error::header_limit)
    return {431, cat("headers may have ", limits.header_bytes, " bytes; send fewer")};
  if (why == http::error::bad_version) return {505, "only HTTP/1.1 and HTTP/1.0 are known here"};
  return {400, cat("the request is not HTTP/1.1 (", why.message(), "); check what is sent")};
}

bool is_of_http(const NetError& why) {
  return why.category() == http::make_error_code(http::error::bad_method).category();
}

// Memory of OpenSSL and Asio per connection.
constexpr uint64_t kTlsBytes = 100 << 10;

// Time for a refused client to read its reply.
constexpr std::chrono::seconds kFarewell{2};

class Server;

// A connection: reads a request, waits until its reply is written, and repeats. It keeps reading
// during a reply, to detect a client that disconnects.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, NetSocket socket);
  ~Connection();
  // `tls`: required from the client; null for an unencrypted connection.
  void start(const TlsContext& tls);
  void shut();

  // Called by Reply from any thread.
  void answer(uint64_t number, std::string bytes, bool last, HttpPieces next = {},
              uint64_t left = 0);
  // Aborts a started reply, so that its client sees that it is incomplete.
  void abandon(uint64_t number);
  bool lost() const { return lost_.load(); }
  bool written() const { return queue_.empty(); }
  bool too_slow() const { return waiting_.load() > limit_; }
  bool keeps_alive() const { return keep_alive_; }
  bool chunked() const { return chunked_; }
  bool without_body() const { return head_only_; }
  // Closed, and no reply uses the request.
  bool over() const { return lost_ && !replying_; }
  PeerSilence silence() const { return {lost_ ? PeerState::served : state_, since_}; }

 private:
  void read_request();
  void got_head();
  void read_body();
  void got_request();
  void refuse(const HttpFault& fault);
  // Runs a step of this connection. If memory runs out, a request without a reply gets 503, and a
  // connection with one is closed.
  template <class F>
  void guard(F&& step) {
    try {
      step();
    } catch (const std::bad_alloc&) {
      out_of_memory();
    }
  }
  void out_of_memory();
  void start_write();
  void watch();
  void write_next();
  void take_piece();
  void finish_reply();
  void handshake(const TlsContext& tls, const NetError& failed);
  void greeted(const NetError& failed);
  void say_farewell();
  void discard();
  void on_peer_state(PeerState state);
  void deadline(std::chrono::milliseconds time);
  bool reserve_body();
  void release_body();

  Server& server_;
  NetStream stream_;
  NetTimer timer_;
  char first_ = 0;                // first byte of a connection that should use TLS
  MemoryReservation tls_memory_;  // of HttpLimits::memory
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;  // header, while the body is read
  PeerState state_ = PeerState::unheard;
  std::chrono::steady_clock::time_point since_;  // see PeerSilence
  std::deque<std::string> queue_;                // bytes to write
  HttpPieces next_;                              // the rest of the body; may be null
  uint64_t left_ = 0;                            // bytes of next_
  const uint64_t limit_;
  std::atomic<uint64_t> waiting_{0};  // bytes in queue_ or posted
  std::atomic<bool> lost_{false};
  uint64_t number_ = 0;       // of the current request
  uint64_t body_ = 0;         // its share of HttpLimits::all_bodies
  MemoryReservation memory_;  // its share of HttpLimits::memory
  bool replying_ = false, writing_ = false, last_ = false, watching_ = false, refused_ = false;
  bool cut_ = false, closing_ = false;  // the reply is incomplete; no more reading
  // Set before the handler is called, and read by the thread that answers.
  bool keep_alive_ = true, chunked_ = true, head_only_ = false;
};

using Reply = HttpReplyOver<Connection>;

class Server final : public HttpServer, public HttpSockets {
 public:
  Server(const HttpLimits& most, HttpHandler what, HttpRefusal words)
      : limits(most), handler(std::move(what)), refusal(std::move(words)) {}
  ~Server() override {
    for (Connection* c : std::vector<Connection*>(open_)) c->shut();
    io.restart();
    io.poll();
    ended_ = true;
  }

  Status open(const std::string& address, uint16_t port) {
    NetAcceptor& acceptor = acceptors_.emplace_back(io);
    LOOM_TRY(acceptor.open(address, port, limits.socket_mode));
    const bool tcp = !acceptor.is_unix();
    port_ = tcp ? acceptor.port() : port;
    acceptor.accept([this] { return full(); }, [this] { return make_room(); },
                    [this, tcp](NetSocket socket) { connect(std::move(socket), tcp); });
    return {};
  }
  bool full() const {
    return count_.load() >= limits.connections &&
           std::ranges::count_if(open_, [](const Connection* c) { return !c->over(); }) >=
               limits.connections;
  }
  bool make_room() {
    std::vector<PeerSilence> peers;
    for (const Connection* c : open_) peers.push_back(c->silence());
    const std::optional<size_t> first = gives_way(peers, std::chrono::steady_clock::now());
    if (first) open_[*first]->shut();
    return first.has_value();
  }
  Status also(const std::string& address) override { return open(address, port_); }
  Status take(int descriptor) override {
    LOOM_ASSIGN(NetSocket socket, adopt_socket(io, descriptor));
    connect(std::move(socket), false);
    return {};
  }
  bool run_one(std::chrono::milliseconds most) override { return run_one_handler(io, most); }
  void use_tls(TlsContext context) override {
    const std::lock_guard lock(tls_mutex_);
    tls_ = std::move(context);
  }

  uint16_t port() const override { return port_; }
  int64_t connections() const override { return count_.load(); }
  void run() override {
    for (;;) {
      try {
        io.run();
        return;
      } catch (const std::bad_alloc&) {
        // From a step that no connection guards. The others continue.
      }
    }
  }
  void refuse_more() override {
    asio::post(io, [this] {
      accepting_ = false;
      for (NetAcceptor& acceptor : acceptors_) acceptor.close();
    });
  }
  void finish(std::chrono::milliseconds most) override {
    asio::post(io, [this, end = std::chrono::steady_clock::now() + most] { try_finish(end); });
  }
  void stop() override { io.stop(); }

  void add(Connection* c) {
    open_.push_back(c);
    ++count_;
  }
  void remove(Connection* c) {
    std::erase(open_, c);
    --count_;
  }
  bool accepting() const { return accepting_; }
  void connect(NetSocket socket, bool tcp);

  uint64_t bodies = 0;  // bytes over all connections

  const HttpLimits limits;
  const HttpHandler handler;
  const HttpRefusal refusal;

 private:
  void try_finish(std::chrono::steady_clock::time_point end);
  uint16_t port_ = 0;
  TlsContext tls() const {
    const std::lock_guard lock(tls_mutex_);
    return tls_;
  }
  mutable std::mutex tls_mutex_;
  TlsContext tls_;  // null means TCP is not encrypted
  // Connections leave this list when the context ends with their handlers, so it lives longer.
  std::vector<Connection*> open_;
  std::atomic<int64_t> count_{0};
  std::atomic<bool> ended_{false};  // the context no longer runs
  bool accepting_ = true;

 public:
  asio::io_context io;

 private:
  std::deque<NetAcceptor> acceptors_;  // not movable
  NetTimer finish_timer_{io};
};

void Server::try_finish(std::chrono::steady_clock::time_point end) {
  const bool written = std::ranges::all_of(open_, [](const Connection* c) { return c->written(); });
  if (written || std::chrono::steady_clock::now() >= end) return io.stop();
  finish_timer_.expires_after(std::chrono::milliseconds(5));
  finish_timer_.async_wait([this, end](const NetError&) { try_finish(end); });
}

// The replying thread may be the last owner of a connection. Lists, sockets and timers belong to
// the server's thread, so that thread destroys it.
void Server::connect(NetSocket socket, bool tcp) {
  const auto take_down = [this](Connection* connection) {
    std::unique_ptr<Connection> last(connection);
    if (ended_) return;
    const bool posted = try_again([&] { asio::dispatch(io, [raw = last.get()] { delete raw; }); });
    (void)last.release();
    if (!posted) return;  // a leak is better than a list that two threads change
  };
  std::shared_ptr<Connection>(new Connection(*this, std::move(socket)), take_down)
      ->start(tcp ? tls() : nullptr);
}

Connection::Connection(Server& server, NetSocket socket)
    : server_(server),
      stream_(std::move(socket)),
      timer_(server.io),
      buffer_(server.limits.header_bytes + (64 << 10)),
      limit_(server.limits.waiting_bytes) {
  server_.add(this);
}

Connection::~Connection() {
  release_body();
  server_.remove(this);
}

Result<MemoryReservation> reserve(const HttpLimits& limits, uint64_t bytes, std::string_view what) {
  if (!limits.memory) return MemoryReservation();
  return limits.memory->reserve(bytes, what);
}

// The length of a chunked body is unknown.
bool Connection::reserve_body() {
  const auto announced = parser_->content_length();
  body_ = announced ? *announced : parser_->chunked() ? server_.limits.body_bytes : 0;
  server_.bodies += body_;
  if (server_.bodies > server_.limits.all_bodies) return false;
  Result<MemoryReservation> share = reserve(server_.limits, body_, "the body");
  if (share.ok()) memory_ = std::move(*share);
  return share.ok();
}

void Connection::release_body() {
  server_.bodies -= std::exchange(body_, 0);
  memory_.reset();
}

void Connection::shut() {
  lost_ = true;
  NetError ignored;
  stream_.socket().close(ignored);
  timer_.cancel();
}

void Connection::deadline(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([weak = weak_from_this()](const NetError& cancelled) {
    const std::shared_ptr<Connection> me = weak.lock();
    if (!cancelled && me != nullptr) me->shut();
  });
}

void Connection::on_peer_state(PeerState state) {
  state_ = state;
  since_ = std::chrono::steady_clock::now();
}

// Only its own connection waits for a handshake; it counts as a silent one when a slot is needed.
void Connection::start(const TlsContext& tls) {
  if (tls == nullptr) return read_request();
  on_peer_state(PeerState::unheard);
  deadline(server_.limits.handshake_time);
  stream_.socket().async_receive(asio::buffer(&first_, 1), asio::socket_base::message_peek,
                                 [me = shared_from_this(), tls](const NetError& failed, size_t) {
                                   me->guard([&] { me->handshake(tls, failed); });
                                 });
}

void Connection::handshake(const TlsContext& tls, const NetError& failed) {
  constexpr char kTlsRecord = 0x16;  // a handshake, RFC 8446, 5.1
  if (failed) return shut();
  if (first_ != kTlsRecord)
    return refuse({400, "this port speaks TLS; ask https:// in place of http://"});
  Result<MemoryReservation> share = reserve(server_.limits, kTlsBytes, "a TLS connection");
  if (!share.ok() || !stream_.start_tls(tls)) return shut();
  tls_memory_ = std::move(*share);
  stream_.handshake(true, [me = shared_from_this()](const NetError& bad) {
    me->guard([&] { me->greeted(bad); });
  });
}

// A refused client learns the reason from an alert, which closing the socket might lose.
void Connection::greeted(const NetError& failed) {
  if (!failed) return read_request();
  refused_ = cut_ = true;
  say_farewell();
}

void Connection::read_request() {
  if (!server_.accepting() && number_ > 0) return shut();
  on_peer_state(number_ == 0 ? PeerState::unheard : PeerState::idle);
  parser_.emplace();
  parser_->header_limit(server_.limits.header_bytes);
  parser_->body_limit(server_.limits.body_bytes);
  deadline(number_ == 0 ? server_.limits.request_time : server_.limits.idle_time);
  // The header first, so that a body that is too large is refused before it is sent.
  http::async_read_header(
      stream_, buffer_, *parser_, [me = shared_from_this()](const NetError& failed, size_t) {
        if (failed == http::error::end_of_stream || (failed && !is_of_http(failed)))
          return me->shut();
        me->guard([&] {
          if (failed) return me->refuse(fault_of(failed, me->server_.limits));
          me->got_head();
        });
      });
}

// Takes the headers. Trailers after a chunked body are dropped: RFC 9110, 6.5.1.
void Connection::got_head() {
  const http::request<http::string_body>& message = parser_->get();
  request_ = {};
  request_.method = std::string(message.method_string());
  for (const auto& field : message)
    request_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  const std::string target(message.target());
  const bool version_11 = message.version() >= 11;
  if (const std::optional<HttpFault> fault = check_head(request_, {target, version_11}))
    return refuse(*fault);
  if (!reserve_body())
    return refuse({503, "too many large requests at a time; try again in a moment"});
  on_peer_state(PeerState::sending);
  deadline(server_.limits.request_time);
  parser_->eager(true);
  if (!version_11 || to_lower_ascii(request_.header("Expect")) != "100-continue")
    return read_body();
  // Replies to a client that waits for permission to continue (curl, above 1 KiB).
  static const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(go_on),
                    [me = shared_from_this()](const NetError& failed, size_t) {
                      if (failed) return me->shut();
                      me->guard([&] { me->read_body(); });
                    });
}

void Connection::read_body() {
  if (parser_->is_done()) return got_request();
  http::async_read_some(stream_, buffer_, *parser_,
                        [me = shared_from_this()](const NetError& failed, size_t) {
                          if (failed && !is_of_http(failed)) return me->shut();
                          me->guard([&] {
                            if (failed) return me->refuse(fault_of(failed, me->server_.limits));
                            me->on_peer_state(PeerState::sending);
                            me->read_body();
                          });
                        });
}

void Connection::out_of_memory() {
  parser_.reset();
  release_body();
  const HttpFault fault{503, "out of memory; try again in a moment"};
  if (replying_ || !try_again([&] { refuse(fault); })) shut();
}

// Replies with one line to anything that is not HTTP, and closes the connection: the start of the
// next request is unknown.
void Connection::refuse(const HttpFault& fault) {
  std::string path = request_.path;
  if (path.empty() && parser_) path = std::string(parser_->get().target());
  path.resize(std::min(path.size(), path.find('?')));
  const std::string body =
      server_.refusal ? server_.refusal(path, fault.status, fault.message)
                      : cat("{\"error\":{\"message\":\"", fault.message,
                            "\",\"type\":\"invalid_request_error\",\"code\":", fault.status, "}}");
  const HttpHeaders headers = {{"Content-Type", "application/json"},
                               {"Content-Length", std::to_string(body.size())}};
  std::string bytes = http_reply_head(fault.status, headers, false) + "\r\n" + body;
  keep_alive_ = false;
  head_only_ = false;
  refused_ = true;
  on_peer_state(PeerState::unheard);
  replying_ = true;
  ++number_;
  answer(number_, std::move(bytes), true);
}

void Connection::got_request() {
  timer_.cancel();
  http::request<http::string_body> message = parser_->release();
  request_.body = std::move(message.body());
  chunked_ = message.version() >= 11;
  keep_alive_ = message.keep_alive() && chunked_;
  head_only_ = message.method() == http::verb::head;
  replying_ = true;
  last_ = false;
  ++number_;
  on_peer_state(PeerState::served);
  std::shared_ptr<Reply> reply;
  if (!try_again([&] { reply = std::make_shared<Reply>(shared_from_this(), number_); }))
    return shut();
  if (!try_again([this] { watch(); })) return shut();
  server_.handler(std::exchange(request_, {}), std::move(reply));
}

// Reads during a reply. The end of the stream means that the client is gone. Other data is the next
// request and is buffered, up to the size of a header.
void Connection::watch() {
  if (watching_ || buffer_.size() >= server_.limits.header_bytes) return;
  stream_.async_read_some(
      buffer_.prepare(1024), [me = shared_from_this()](const NetError& failed, size_t count) {
        me->watching_ = false;
        const bool called_off = failed == asio::error::operation_aborted && !me->lost_;
        if (failed && !called_off) return me->shut();
        if (me->closing_) return;
        me->buffer_.commit(count);
        me->guard([&] {
          if (!me->replying_) return me->read_request();
          if (!try_again([&] { me->watch(); })) me->shut();
        });
      });
  watching_ = true;
}

void Connection::answer(uint64_t number, std::string bytes, bool last, HttpPieces next,
                        uint64_t left) {
  const uint64_t size = bytes.size();
  waiting_ += size;
  auto queue = [me = shared_from_this(), number, bytes = std::move(bytes), last,
                next = std::move(next), left]() mutable {
    if (me->lost_ || number != me->number_ || !me->replying_) {
      me->waiting_ -= bytes.size();
      return;
    }
    const bool queued = try_again([&] {
      if (!bytes.empty()) me->queue_.push_back(std::move(bytes));
    });
    if (!queued) return me->shut();
    me->last_ = me->last_ || last;
    me->next_ = std::move(next);
    me->left_ = left;
    if (!me->writing_) me->guard([&] { me->write_next(); });
  };
  WaitingBytes bytes_of_this{waiting_, size};
  asio::post(server_.io, std::move(queue));
  bytes_of_this.count = 0;
}

void Connection::abandon(uint64_t number) {
  asio::post(server_.io, [me = shared_from_this(), number] {
    if (me->lost_ || number != me->number_ || !me->replying_) return;
    me->keep_alive_ = false;
    me->cut_ = me->last_ = true;
    if (!me->writing_) me->guard([&] { me->write_next(); });
  });
}

// An empty piece before the end cuts the reply.
void Connection::take_piece() {
  std::string piece = next_();
  left_ -= std::min<uint64_t>(left_, piece.size());
  cut_ = piece.empty();
  keep_alive_ = keep_alive_ && !cut_;
  last_ = cut_ || left_ == 0;
  if (last_) next_ = nullptr;
  waiting_ += piece.size();
  if (!cut_) queue_.push_back(std::move(piece));
}

void Connection::write_next() {
  if (queue_.empty() && next_) take_piece();
  if (queue_.empty()) {
    if (last_) finish_reply();
    return;
  }
  writing_ = true;
  if (!try_again([this] { start_write(); })) shut();
}

void Connection::start_write() {
  deadline(server_.limits.write_time);
  asio::async_write(stream_, asio::buffer(queue_.front()),
                    [me = shared_from_this()](const NetError& failed, size_t) {
                      me->writing_ = false;
                      me->timer_.cancel();
                      if (failed) return me->shut();
                      me->waiting_ -= me->queue_.front().size();
                      me->queue_.pop_front();
                      me->guard([&] { me->write_next(); });
                    });
}

void Connection::finish_reply() {
  release_body();
  replying_ = false;
  last_ = false;
  if (!keep_alive_) return say_farewell();
  on_peer_state(PeerState::idle);
  if (!watching_) {
    if (!try_again([this] { read_request(); })) shut();
    return;
  }
  // watch() starts the next request with what it reads; if a part is buffered already, starts now.
  deadline(server_.limits.idle_time);
  NetError ignored;
  if (buffer_.size() > 0) stream_.socket().cancel(ignored);
}

// Ends TLS properly, so that a client can tell the end from a truncation. An incomplete reply is
// truncated.
void Connection::say_farewell() {
  closing_ = true;
  on_peer_state(PeerState::unheard);
  const auto close = [me = shared_from_this()](NetError error) {
    me->stream_.socket().shutdown(asio::socket_base::shutdown_send, error);
    if (!me->refused_) return me->shut();
    if (!try_again([&] { me->discard(); })) me->shut();
  };
  deadline(std::min<std::chrono::milliseconds>(kFarewell, server_.limits.request_time));
  stream_.secure() && !cut_ ? stream_.end_tls(close) : close({});
}

// Closing a socket with unread bytes resets the connection, and the client may lose the reply.
void Connection::discard() {
  buffer_.clear();
  stream_.socket().async_read_some(buffer_.prepare(4096),
                                   [me = shared_from_this()](const NetError& failed, size_t) {
                                     if (failed) return me->shut();
                                     if (!try_again([&] { me->discard(); })) me->shut();
                                   });
}

}  // namespace

std::unique_ptr<HttpSockets> HttpSockets::create(const HttpLimits& limits, HttpHandler handler,
                                                 HttpRefusal refusal) {
  return std::make_unique<Server>(limits, std::move(handler), std::move(refusal));
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& address, uint16_t port,
                                                       const HttpLimits& limits,
                                                       HttpHandler handler, HttpRefusal refusal) {
  auto server = std::make_unique<Server>(limits, std::move(handler), std::move(refusal));
  LOOM_TRY(server->open(address, port));
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace loom::core
