// Telemetry over the network, against servers on the loopback that take, refuse, hang or are not
// there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/waits.hpp"
#include "io/json/json.hpp"
#include "io/socket.hpp"
#include "telemetry/hanging.hpp"
#include "telemetry/queue.hpp"

#if LOOM_THREADS && (defined(__unix__) || defined(__APPLE__))
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A socket on a free port of the loopback.
class Loopback {
 public:
  explicit Loopback(int type, bool listens = true) : handle_(::socket(AF_INET, type, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    if (::bind(handle_, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
        ::getsockname(handle_, reinterpret_cast<sockaddr*>(&at), &size) == 0)
      port_ = ntohs(at.sin_port);
    if (type == SOCK_STREAM && listens) ::listen(handle_, 4);
  }
  ~Loopback() { ::close(handle_); }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;
  int port() const { return port_; }
  int handle() const { return handle_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/runs"; }

 private:
  int handle_, port_ = 0;
};

Record scalar(int64_t step) {
  Record r;
  r.tag = "loss/train";
  r.step = step;
  r.value = 0.5;
  return r;
}

std::string read_request(int connection) {
  std::string all;
  char buffer[4096];
  for (;;) {
    const size_t head = all.find("\r\n\r\n");
    const size_t length = all.find("Content-Length: ");
    if (head != std::string::npos && length != std::string::npos &&
        all.size() >= head + 4 + std::stoul(all.substr(length + 16)))
      return all;
    const auto got = ::recv(connection, buffer, sizeof(buffer), 0);
    if (got <= 0) return all;
    all.append(buffer, static_cast<size_t>(got));
  }
}

// Answers so many requests with `reply`, each on the connection that is open or a new one.
std::vector<std::string> serve(const Loopback& server, int requests, const std::string& reply) {
  std::vector<std::string> out;
  int connection = -1;
  while (static_cast<int>(out.size()) < requests) {
    if (connection < 0) connection = ::accept(server.handle(), nullptr, nullptr);
    std::string request = read_request(connection);
    if (request.empty()) {
      ::close(connection);
      connection = -1;
      continue;
    }
    out.push_back(std::move(request));
    if (::send(connection, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) break;
  }
  ::close(connection);
  return out;
}

TEST(HostPorts, AreReadAndThoseThatCannotBeAreRefused) {
  EXPECT_EQ(parse_host_port("a.b:80")->port, 80);
  EXPECT_EQ(parse_host_port("[::1]:90")->host, "::1");
  EXPECT_EQ(parse_host_port("a", 7)->port, 7);
  for (const char* text : {"", "a", ":80", "a:0", "a:65536", "a:x", "a:80x", "a:-1", "[::1"})
    EXPECT_FALSE(parse_host_port(text).ok()) << text;
  for (const char* url : {"", "https://a:1/", "http://", "http://a:b/", "http://a/x y", "a:80"})
    EXPECT_FALSE(http_sink(url).ok()) << url;
}

TEST(HttpSink, PostsLinesOverOneConnectionAndLosesNone) {
  const Loopback server(SOCK_STREAM);
  std::vector<std::string> got;
  std::thread serving(
      [&] { got = serve(server, 2, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); });
  {
    const std::unique_ptr<Sink> sink = http_sink(server.url(), 3600).value();
    ASSERT_TRUE(sink->write(scalar(1)).ok());
    ASSERT_TRUE(sink->write(scalar(2)).ok());
    ASSERT_TRUE(sink->flush().ok());
    ASSERT_TRUE(sink->flush().ok());  // nothing waits: no post
    ASSERT_TRUE(sink->write(scalar(3)).ok());
    ASSERT_TRUE(sink->flush().ok());
  }
  serving.join();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_THAT(got[0], StartsWith("POST /runs HTTP/1.1\r\n"));
  EXPECT_THAT(got[0], HasSubstr("application/x-ndjson"));
  EXPECT_THAT(got[0], HasSubstr(json_line(scalar(1)) + "\n" + json_line(scalar(2)) + "\n"));
  EXPECT_THAT(got[1], HasSubstr(json_line(scalar(3))));
}

TEST(HttpSink, EndsAfterThreePostsInARowThatFailedAndSaysHowManyRecordsWereLost) {
  const Loopback server(SOCK_STREAM);
  std::thread serving([&] { serve(server, 3, "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"); });
  const std::unique_ptr<Sink> sink = http_sink(server.url(), 3600).value();
  Status last;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(last.ok());
    ASSERT_TRUE(sink->write(scalar(i)).ok());
    last = sink->flush();
  }
  serving.join();
  ASSERT_FALSE(last.ok());
  EXPECT_THAT(last.error().message, HasSubstr("3 records were lost"));
  EXPECT_THAT(last.error().message, HasSubstr("500"));
}

TEST(HttpSink, ThatNobodyAnswersFailsInsteadOfWaiting) {
  const Loopback refuses(SOCK_STREAM,
                         /*listens=*/false);  // holds the port, so that no other has it
  const Loopback hangs(SOCK_STREAM);          // takes connections and never answers
  for (const Loopback* server : {&refuses, &hangs}) {
    const std::unique_ptr<Sink> sink = http_sink(server->url(), 0.1).value();
    Status last;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(sink->write(scalar(i)).ok());
      last = sink->flush();
    }
    EXPECT_FALSE(last.ok());
  }
}

// Were a push to wait for the sink, this would never end: the server answers nothing, and the sink
// waits for it longer than any test may take.
TEST(HttpSink, ThatHangsHoldsNobodyUpAndWhatComesIsDroppedAndCounted) {
  constexpr int kRecords = 4000, kCapacity = 8;
  auto server = std::make_unique<Loopback>(SOCK_STREAM);
  std::vector<std::unique_ptr<Sink>> sinks;
  sinks.push_back(http_sink(server->url(), 3600).value());
  RecordQueue queue(std::move(sinks), kCapacity);
  queue.push(scalar(0));
  const int connection = ::accept(server->handle(), nullptr, nullptr);
  EXPECT_THAT(read_request(connection), StartsWith("POST "));  // the sink waits for the reply
  for (int i = 1; i <= kRecords; ++i) queue.push(scalar(i));
  EXPECT_EQ(queue.dropped(), kRecords - kCapacity);
  server.reset();  // the posts that are left are refused
  ::close(connection);
  const Status closed = queue.close(kDeadline);
  ASSERT_FALSE(closed.ok());
  EXPECT_THAT(closed.error().message, HasSubstr("records were lost"));
}

TEST(UdpSink, SendsADatagramForEachLineAndCutsWhatIsTooLong) {
  const Loopback server(SOCK_DGRAM);
  const std::unique_ptr<Sink> sink = udp_sink("127.0.0.1:" + std::to_string(server.port())).value();
  ASSERT_TRUE(sink->write(scalar(7)).ok());
  Record wide;
  wide.kind = Record::Kind::histogram;
  wide.tag = "weights/w";
  wide.histogram.limits.assign(500, 0.123456);
  wide.histogram.counts.assign(500, 1234);
  ASSERT_TRUE(sink->write(wide).ok());
  char buffer[2048];
  const auto receive = [&]() -> std::string {
    pollfd one{server.handle(), POLLIN, 0};
    if (poll(&one, 1, kDeadlineMs) != 1) return {};
    const auto got = ::recv(server.handle(), buffer, sizeof(buffer), 0);
    return {buffer, static_cast<size_t>(std::max<ssize_t>(got, 0))};
  };
  EXPECT_EQ(receive(), json_line(scalar(7)) + "\n");
  const std::string cut = receive();
  EXPECT_THAT(cut, HasSubstr("\"cut\":true"));
  EXPECT_LE(cut.size(), 1400U);
}

TEST(UdpSink, WithoutAnyoneWhoListensDoesNotFail) {
  int port = 0;
  {
    const Loopback gone(SOCK_DGRAM);
    port = gone.port();
  }
  const std::unique_ptr<Sink> sink = udp_sink("127.0.0.1:" + std::to_string(port)).value();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(sink->write(scalar(i)).ok());
  const Status ended = sink->end();
  ASSERT_FALSE(ended.ok());
  EXPECT_THAT(ended.error().str(), HasSubstr("no listener there; 5 datagrams were lost"));
}

// One record: what the system says of it comes after the last send.
TEST(UdpSink, SaysThatNobodyListenedToItsOnlyDatagram) {
  int port = 0;
  {
    const Loopback gone(SOCK_DGRAM);
    port = gone.port();
  }
  const auto sink = udp_sink("127.0.0.1:" + std::to_string(port)).value();
  EXPECT_TRUE(sink->end().ok());  // nothing was sent
  ASSERT_TRUE(sink->write(scalar(1)).ok());
  EXPECT_FALSE(sink->end().ok());
}

TEST(UdpSink, WithAListenerThatComesLaterOrGoesDoesNotFail) {
  auto server = std::make_unique<Loopback>(SOCK_DGRAM);
  const auto sink = udp_sink("127.0.0.1:" + std::to_string(server->port())).value();
  ASSERT_TRUE(sink->write(scalar(1)).ok());
  ASSERT_TRUE(sink->write(scalar(2)).ok());
  server.reset();
  for (int i = 3; i < 8; ++i) ASSERT_TRUE(sink->write(scalar(i)).ok());
  EXPECT_TRUE(sink->end().ok());
}

// Fewer posts than end the sink: the run would have ended without a word.
TEST(HttpSink, ThatReachedNobodyFailsAtTheEnd) {
  const Loopback refuses(SOCK_STREAM, /*listens=*/false);
  std::vector<std::unique_ptr<Sink>> sinks;
  sinks.push_back(http_sink(refuses.url(), 1).value());
  RecordQueue queue(std::move(sinks), 100);
  for (int i = 0; i < 5; ++i) queue.push(scalar(i));
  const Status closed = queue.close(kDeadline);
  ASSERT_FALSE(closed.ok());
  EXPECT_THAT(closed.error().message, HasSubstr("telemetry: 5 records were lost: "));
  EXPECT_EQ(closed.error().where, refuses.url());
}

// The lines that a viewer gets.
class Viewer {
 public:
  std::string address() const { return "127.0.0.1:" + std::to_string(server_.port()); }
  std::string receive() {
    char buffer[4096];
    pollfd one{server_.handle(), POLLIN, 0};
    if (poll(&one, 1, kDeadlineMs) != 1) return {};
    const auto got = ::recv(server_.handle(), buffer, sizeof(buffer), 0);
    return {buffer, static_cast<size_t>(std::max<ssize_t>(got, 0))};
  }

 private:
  Loopback server_{SOCK_DGRAM};
};

Record picture_of_one(size_t links, size_t branches) {
  Record r;
  r.kind = Record::Kind::picture;
  PictureNode node{"z0_y0_x1_l2_Parallel", "Parallel", {}, {}};
  node.cell = PictureCell{{0, 0, 1, 2}, 3, 650, {}, "concat", {}};
  for (size_t i = 0; i < links; ++i) node.cell->links.push_back({0, 0, 0, static_cast<int64_t>(i)});
  node.cell->branches.assign(branches, "MultiHeadAttention");
  r.nodes = {{"input", "Placeholder", {}, {}}, node};
  return r;
}

Record pass_of_it(int64_t number, bool backward) {
  Record r;
  r.kind = Record::Kind::pass;
  r.step = number;
  r.pass = {{0, 0, 1, 2}, "Parallel", backward, 1000, 2500, {32, 10}};
  return r;
}

TEST(TanhiSink, TellsWhereALayerIsWhatItHoldsAndHowLongItTook) {
  Viewer viewer;
  const std::unique_ptr<Sink> sink = tanhi_sink(viewer.address()).value();
  ASSERT_TRUE(sink->write(picture_of_one(1, 2)).ok());
  ASSERT_TRUE(sink->write(pass_of_it(7, true)).ok());
  const std::string line = viewer.receive();
  EXPECT_EQ(line,
            R"({"v":"tanhi1","seq":7,"phase":"bwd","idx":0,"z":0,"y":0,"x":1,"l":2,)"
            R"("layer":"Parallel","dtype":3,"connections":650,"t0_ns":1000,"t1_ns":2500,)"
            R"("shape":[32,10],"links":[{"z":0,"y":0,"x":0,"l":0}],"combine":"concat","branches":[)"
            R"({"type":"MultiHeadAttention","slot":0,"remote":false,"tz":0,"ty":0,"tx":1,"tl":2},)"
            R"({"type":"MultiHeadAttention","slot":1,"remote":false,"tz":0,"ty":0,"tx":1,"tl":2}]})"
            "\n");
}

TEST(TanhiSink, KeepsDatagramsToWhatEveryNetworkCarriesAndTheProtocolsMost) {
  for (const auto& [links, branches] : std::vector<std::pair<size_t, size_t>>{
           {0, 500}, {500, 0}, {500, 500}, {12, 0}, {0, 12}, {0, 0}}) {
    Viewer viewer;
    const std::unique_ptr<Sink> sink = tanhi_sink(viewer.address()).value();
    ASSERT_TRUE(sink->write(picture_of_one(links, branches)).ok());
    ASSERT_TRUE(sink->write(pass_of_it(1, false)).ok());
    const std::string line = viewer.receive();
    EXPECT_LE(line.size(), 1400U);
    const JsonValue seen = parse_json(line, "a datagram", {}).value();
    const JsonValue* all_links = seen.find("links");
    const JsonValue* all_branches = seen.find("branches");
    ASSERT_NE(all_links, nullptr);
    EXPECT_LE(all_links->elements().size(), std::min<size_t>(links, 48));
    EXPECT_EQ(all_links->elements().size() > 0, links > 0);
    EXPECT_EQ(all_branches != nullptr, branches > 0);
    if (all_branches != nullptr) {
      EXPECT_LE(all_branches->elements().size(), std::min<size_t>(branches, 32));
    }
    if (links <= 12 && branches == 0) {
      EXPECT_EQ(all_links->elements().size(), links);
    }
  }
}

TEST(TanhiSink, LeavesNumbersToOthersAndOthersLeavePassesToIt) {
  Viewer viewer;
  const std::unique_ptr<Sink> sink = tanhi_sink(viewer.address()).value();
  const std::unique_ptr<Sink> lines = line_sink([](std::string_view) { return Status(); });
  EXPECT_FALSE(sink->takes(Record::Kind::scalar));
  EXPECT_TRUE(sink->takes(Record::Kind::pass));
  EXPECT_TRUE(lines->takes(Record::Kind::scalar));
  EXPECT_FALSE(lines->takes(Record::Kind::pass));
  EXPECT_FALSE(lines->takes(Record::Kind::sweep));
  EXPECT_FALSE(tanhi_sink("127.0.0.1:none").ok());
  EXPECT_TRUE(tanhi_sink("127.0.0.1").ok());
}

TEST(TanhiSink, BehindAFullQueueDropsAndLeavesGapsInTheCount) {
  constexpr int kPasses = 100, kCapacity = 4;
  Viewer viewer;
  const auto gate = std::make_shared<Gate>();
  std::vector<std::unique_ptr<Sink>> sinks;
  sinks.push_back(std::make_unique<Hanging>(gate));
  sinks.push_back(tanhi_sink(viewer.address()).value());
  RecordQueue queue(std::move(sinks), kCapacity);
  const auto number = [&] {
    const JsonValue seen = parse_json(viewer.receive(), "a datagram", {}).value();
    return seen.find("seq")->as_int("seq").value();
  };
  queue.push(pass_of_it(1, false));
  gate->wait_until_reached();  // the first is with the sinks, none waits
  for (int i = 2; i <= kPasses; ++i) queue.push(pass_of_it(i, false));
  EXPECT_EQ(queue.dropped(), kPasses - 1 - kCapacity);
  gate->let_go();
  for (int i = 1; i <= 1 + kCapacity; ++i) EXPECT_EQ(number(), i);
  queue.push(pass_of_it(kPasses + 1, false));
  EXPECT_EQ(number(), kPasses + 1);
  ASSERT_TRUE(queue.close(kDeadline).ok());
}

}  // namespace
}  // namespace loom::core::test
#endif
