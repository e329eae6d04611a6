#include "remote/listener.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "net/give_way.hpp"
#include "net/stream.hpp"

namespace loom::core {
namespace {

class Listener;

// Time to send the last message.
constexpr std::chrono::seconds kFarewell{2};

class Connection final : public DonateConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Listener& listener, NetSocket socket);
  // `tls`: null for an unencrypted connection.
  void start(const TlsContext& tls);
  void shut();

  void send(std::string json) override;
  void next() override;
  void await(int64_t more) override;
  void finish() override;
  void allow(uint32_t most) override { most_ = most; }
  bool gone() const override { return lost_.load(); }
  bool written() const { return queue_.empty(); }
  PeerSilence silence() const;

 private:
  void shut_after(NetTimer& timer, std::chrono::milliseconds time);
  void open();
  void read_head();
  void read_body();
  void read_more();
  void got_frame();
  void refuse(const Error& why);
  void write_next();
  void end();
  void leave();
  void discard();
  void watch_silence();
  bool book(size_t room);
  void release();

  Listener& listener_;
  NetStream stream_;
  NetTimer reading_timer_, writing_timer_;
  std::shared_ptr<DonateHandler> handler_;
  DonateHead head_{};
  std::string body_;
  size_t have_ = 0, length_ = 0;   // of the frame being read; length 0 means none
  uint64_t booked_ = 0;            // its share of DonateLimits::frames
  std::deque<std::string> queue_;  // frames to write
  uint64_t waiting_ = 0;           // bytes in it
  int64_t awaited_ = 0;            // pending answers
  std::atomic<uint32_t> most_;
  std::atomic<bool> lost_{false};
  bool wants_next_ = false, silent_ = false, writing_ = false;
  bool reading_ended_ = false;  // no more reading
  bool finishing_ = false;      // no frames after those in queue_
  bool ended_ = false;
  bool greeted_ = false;                         // a complete frame was received
  std::chrono::steady_clock::time_point since_;  // see PeerSilence
  std::array<char, 4096> discarded_{};
};

class Listener final : public DonateListener {
 public:
  Listener(const DonateLimits& most, Make what)
      : limits(most), make(std::move(what)), acceptor_(io), stop_timer_(io) {}
  ~Listener() override {
    for (const auto& connection : std::vector<std::shared_ptr<Connection>>(open_))
      connection->shut();
    io.restart();
    io.poll();
  }

  Status open(const std::string& address, uint16_t port);
  Status take(int descriptor) override {
    LOOM_ASSIGN(NetSocket socket, adopt_socket(io, descriptor));
    connect(std::move(socket), false);
    return {};
  }
  bool run_one(std::chrono::milliseconds most) override { return run_one_handler(io, most); }
  uint16_t port() const override { return acceptor_.port(); }
  int64_t connections() const override { return count_.load(); }
  void use_tls(TlsContext context) override {
    const std::lock_guard lock(tls_mutex_);
    tls_ = std::move(context);
  }
  void run() override { io.run(); }
  void refuse_more() override {
    asio::post(io, [this] { acceptor_.close(); });
  }
  void stop(std::chrono::milliseconds grace) override {
    asio::post(io, [this, end = std::chrono::steady_clock::now() + grace] { try_stop(end); });
  }

  void remove(const std::shared_ptr<Connection>& connection) {
    count_ -= std::erase(open_, connection);
  }

  const DonateLimits limits;
  const Make make;
  uint64_t frames = 0;  // bytes over all connections
  asio::io_context io;

 private:
  void connect(NetSocket socket, bool tcp);
  void try_stop(std::chrono::steady_clock::time_point end);
  bool make_room();
  TlsContext tls() const {
    const std::lock_guard lock(tls_mutex_);
    return tls_;
  }

  mutable std::mutex tls_mutex_;
  TlsContext tls_;  // null means TCP is not encrypted
  // Connections that are not shut. Others may hold a connection longer, but only one thread touches
  // what it shares with the listener.
  std::vector<std::shared_ptr<Connection>> open_;
  std::atomic<int64_t> count_{0};
  NetAcceptor acceptor_;
  NetTimer stop_timer_;
};

Status Listener::open(const std::string& address, uint16_t port) {
  LOOM_TRY(acceptor_.open(address, port, limits.socket_mode));
  acceptor_.accept(
      [this] { return count_.load() >= limits.connections; }, [this] { return make_room(); },
      [this, tcp = !acceptor_.is_unix()](NetSocket socket) { connect(std::move(socket), tcp); });
  return {};
}

void Listener::connect(NetSocket socket, bool tcp) {
  open_.push_back(std::make_shared<Connection>(*this, std::move(socket)));
  ++count_;
  std::shared_ptr<Connection>(open_.back())->start(tcp ? tls() : nullptr);
}

bool Listener::make_room() {
  std::vector<PeerSilence> peers;
  for (const auto& connection : open_) peers.push_back(connection->silence());
  const std::optional<size_t> first = gives_way(peers, std::chrono::steady_clock::now());
  if (first) std::shared_ptr<Connection>(open_[*first])->shut();
  return first.has_value();
}

void Listener::try_stop(std::chrono::steady_clock::time_point end) {
  const bool written =
      std::ranges::all_of(open_, [](const auto& connection) { return connection->written(); });
  if (written || std::chrono::steady_clock::now() >= end) {
    for (const auto& connection : std::vector<std::shared_ptr<Connection>>(open_))
      connection->shut();
    return io.stop();
  }
  stop_timer_.expires_after(std::chrono::milliseconds(10));
  stop_timer_.async_wait([this, end](const NetError&) { try_stop(end); });
}

Connection::Connection(Listener& listener, NetSocket socket)
    : listener_(listener),
      stream_(std::move(socket)),
      reading_timer_(listener.io),
      writing_timer_(listener.io),
      most_(listener.limits.first_frame) {}

void Connection::shut_after(NetTimer& timer, std::chrono::milliseconds time) {
  timer.expires_after(time);
  timer.async_wait([weak = weak_from_this()](const NetError& cancelled) {
    const std::shared_ptr<Connection> me = weak.lock();
    if (!cancelled && me != nullptr) me->shut();
  });
}

// Only its own connection waits for a handshake; it counts as a silent one when a slot is needed.
void Connection::start(const TlsContext& tls) {
  since_ = std::chrono::steady_clock::now();
  if (tls == nullptr) return open();
  if (!stream_.start_tls(tls)) return shut();
  shut_after(reading_timer_, std::min(listener_.limits.handshake_time, listener_.limits.time));
  stream_.handshake(true, [me = shared_from_this()](const NetError& failed) {
    me->reading_timer_.cancel();
    failed ? me->leave() : me->open();
  });
}

void Connection::open() {
  since_ = std::chrono::steady_clock::now();
  handler_ = listener_.make();
  handler_->on_open(shared_from_this());
}

// On the thread of run(), or after it has ended.
void Connection::shut() {
  if (lost_.exchange(true)) return;
  listener_.frames -= std::exchange(booked_, 0);  // releases its share
  NetError ignored;
  stream_.socket().close(ignored);
  reading_timer_.cancel();
  writing_timer_.cancel();
  handler_.reset();
  listener_.remove(shared_from_this());
}

PeerSilence Connection::silence() const {
  PeerState state = PeerState::served;
  if (!greeted_ || ended_) {
    state = PeerState::unheard;
  } else if (awaited_ == 0 && silent_) {
    state = PeerState::idle;
  } else if (awaited_ == 0 && length_ > 0) {
    state = PeerState::sending;
  }
  return {state, since_};
}

// ---- reading ------------------------------------------------------------------------------------

void Connection::next() {
  asio::post(listener_.io, [me = shared_from_this()] {
    me->listener_.frames -= std::exchange(me->booked_, 0);
    me->wants_next_ = true;
    me->read_head();
  });
}

void Connection::await(int64_t more) {
  asio::post(listener_.io, [me = shared_from_this(), more] {
    me->awaited_ += more;
    if (me->silent_) me->watch_silence();
  });
}

// A client that waits for an answer may be silent. Otherwise it must send something, or it loses
// its slot.
void Connection::watch_silence() {
  reading_timer_.cancel();
  since_ = std::chrono::steady_clock::now();
  if (awaited_ > 0 || lost_ || reading_ended_) return;
  shut_after(reading_timer_, listener_.limits.idle_time.value_or(listener_.limits.time));
}

// Stops reading from a client that does not read its answers.
void Connection::read_head() {
  if (!wants_next_ || lost_ || reading_ended_ || waiting_ > listener_.limits.waiting_bytes) return;
  wants_next_ = false;
  silent_ = true;
  watch_silence();
  // The first byte alone: it starts the frame's time limit.
  asio::async_read(
      stream_, asio::buffer(head_.data(), 1),
      [me = shared_from_this()](const NetError& failed, size_t) {
        me->silent_ = false;
        me->length_ = 1;  // a frame has started
        if (me->reading_ended_) return;
        if (failed) return me->shut();
        me->reading_timer_.expires_after(me->listener_.limits.time);
        me->reading_timer_.async_wait([weak = me->weak_from_this()](const NetError& cancelled) {
          const std::shared_ptr<Connection> late = weak.lock();
          if (!cancelled && late != nullptr)
            late->refuse(make_error(Code::io_error, "the frame was not whole in time"));
        });
        asio::async_read(me->stream_, asio::buffer(me->head_.data() + 1, kDonateHead - 1),
                         [me](const NetError& broken, size_t) {
                           if (me->reading_ended_) return;
                           if (broken) return me->shut();
                           me->read_body();
                         });
      });
}

void Connection::read_body() {
  const Result<uint32_t> length = donate_length(head_, most_);
  if (!length.ok()) return refuse(length.error());
  body_.clear();
  length_ = *length;
  have_ = 0;
  read_more();
}

bool Connection::book(size_t room) {
  const uint64_t more = room - booked_;
  if (listener_.frames + more > listener_.limits.frames) return false;
  listener_.frames += more;
  booked_ = room;
  return true;
}

// Called when no read into the body is pending.
void Connection::release() {
  listener_.frames -= std::exchange(booked_, 0);
  body_ = {};
}

void Connection::read_more() {
  if (have_ == body_.size()) {
    const size_t room = donate_room(have_, length_);
    if (!book(room)) {
      release();
      return refuse(make_error(Code::out_of_memory, "too many large frames at a time"));
    }
    body_.resize(room);
  }
  stream_.async_read_some(asio::buffer(body_.data() + have_, body_.size() - have_),
                          [me = shared_from_this()](const NetError& failed, size_t count) {
                            if (me->reading_ended_) return;
                            if (failed) return me->shut();
                            me->have_ += count;
                            if (me->greeted_) me->since_ = std::chrono::steady_clock::now();
                            if (me->have_ < me->length_) return me->read_more();
                            me->got_frame();
                          });
}

void Connection::got_frame() {
  reading_timer_.cancel();
  std::string frame = std::exchange(body_, {});
  length_ = 0;
  greeted_ = true;
  if (handler_ != nullptr) handler_->on_frame(shared_from_this(), std::move(frame));
}

// The bytes after such a frame cannot be interpreted.
void Connection::refuse(const Error& why) {
  reading_ended_ = true;
  reading_timer_.cancel();
  std::string text;
  for (const char c : why.message) text += c == '"' || c == '\\' ? '\'' : c;
  send(cat(R"({"v":1,"type":"error","error":")", text, R"("})"));
  finish();
}

// ---- writing ------------------------------------------------------------------------------------

void Connection::send(std::string json) {
  asio::post(listener_.io, [me = shared_from_this(), frame = donate_frame(json)]() mutable {
    if (me->lost_ || me->ended_) return;
    me->waiting_ += frame.size();
    me->queue_.push_back(std::move(frame));
    if (!me->writing_) me->write_next();
  });
}

void Connection::write_next() {
  if (queue_.empty()) {
    if (finishing_) end();
    return;
  }
  writing_ = true;
  shut_after(writing_timer_, listener_.limits.time);
  asio::async_write(stream_, asio::buffer(queue_.front()),
                    [me = shared_from_this()](const NetError& failed, size_t) {
                      me->writing_ = false;
                      me->writing_timer_.cancel();
                      if (failed) return me->shut();
                      me->waiting_ -= me->queue_.front().size();
                      me->queue_.pop_front();
                      me->write_next();
                      me->read_head();
                    });
}

void Connection::finish() {
  asio::post(listener_.io, [me = shared_from_this()] {
    if (me->lost_ || std::exchange(me->finishing_, true)) return;
    me->reading_ended_ = true;
    if (!me->writing_) me->write_next();
  });
}

// Cancels reading. TLS marks the end, so that it differs from a truncation.
void Connection::end() {
  if (std::exchange(ended_, true)) return;
  NetError ignored;
  stream_.socket().cancel(ignored);
  handler_.reset();
  // Runs after the cancelled operations.
  asio::post(listener_.io, [me = shared_from_this()] { me->release(); });
  if (!stream_.secure()) return leave();
  shut_after(reading_timer_, kFarewell);
  stream_.end_tls([me = shared_from_this()](const NetError&) { me->leave(); });
}

// Closing a socket with unread bytes resets the connection, and the last message may be lost. So
// incoming bytes are read and dropped for a moment.
void Connection::leave() {
  if (lost_) return;
  ended_ = reading_ended_ = true;
  NetError ignored;
  stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  shut_after(reading_timer_, std::min<std::chrono::milliseconds>(kFarewell, listener_.limits.time));
  discard();
}

void Connection::discard() {
  stream_.socket().async_read_some(asio::buffer(discarded_),
                                   [me = shared_from_this()](const NetError& failed, size_t) {
                                     if (failed && failed != asio::error::operation_aborted)
                                       return me->shut();
                                     if (!me->lost_) me->discard();
                                   });
}

}  // namespace

std::unique_ptr<DonateListener> DonateListener::create(const DonateLimits& limits, Make make) {
  return std::make_unique<Listener>(limits, std::move(make));
}

Result<std::unique_ptr<DonateListener>> DonateListener::listen(const std::string& address,
                                                               uint16_t port,
                                                               const DonateLimits& limits,
                                                               Make make) {
  auto listener = std::make_unique<Listener>(limits, std::move(make));
  LOOM_TRY(listener->open(address, port));
  return std::unique_ptr<DonateListener>(std::move(listener));
}

}  // namespace loom::core
