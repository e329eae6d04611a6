#include "serve/http/http.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <random>
#include <thread>

#include "client.hpp"

namespace loom::core::test {
namespace {

using std::chrono::milliseconds;

// Echoes the request; /wait answers when the test says so, /flood never ends.
class Http : public ::testing::Test {
 protected:
  void start(const HttpLimits& limits = {}) {
    Result<std::unique_ptr<HttpServer>> server = HttpServer::listen(
        "127.0.0.1", 0, limits, [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
          handle(std::move(request), std::move(reply));
        });
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->run(); });
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->stop();
    thread_.join();
    kept_.reset();
    server_.reset();
  }
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const std::lock_guard lock(mutex_);
    ++handled_;
    if (request.path == "/wait") {
      kept_ = std::move(reply);
    } else if (request.path == "/hold") {  // keeps the server's thread
      holding_ = true;
      const std::lock_guard held(hold_);
      reply->send(200, {}, "");
    } else if (request.path == "/stream") {
      reply->begin(200, {{"Content-Type", "text/plain"}});
      for (const char* word : {"one ", "two ", "three"}) reply->write(word);
      reply->end();
    } else if (request.path != "/forget") {
      reply->send(200, {{"X-Note", "a\r\nSet-Cookie: b"}},
                  cat(request.method, " ", request.path, " ", request.query, " ", request.body));
    }
  }
  std::shared_ptr<HttpReply> kept() {
    std::shared_ptr<HttpReply> found;
    EXPECT_TRUE(wait_until([&] {
      const std::lock_guard lock(mutex_);
      found = kept_;
      return found != nullptr;
    }));
    return found;
  }
  int handled() {
    const std::lock_guard lock(mutex_);
    return handled_;
  }
  uint16_t port() const { return server_->port(); }

  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::mutex mutex_, hold_;
  std::atomic<bool> holding_{false};
  std::shared_ptr<HttpReply> kept_;
  int handled_ = 0;
};

TEST_F(Http, AnswersWholeRequestsAndStreams) {
  start();
  EXPECT_EQ(ask(port(), "POST", "/a%20b?c=d", "{}").body, "POST /a b c=d {}");
  EXPECT_EQ(ask(port(), "GET", "/stream").body, "one two three");
  const Answer head = ask(port(), "HEAD", "/x");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.body.empty());
  EXPECT_TRUE(head.has("Content-Length: "));
}

TEST_F(Http, HeadersOfOursHoldNoLineBreaks) {
  start();
  const Answer answer = ask(port(), "GET", "/");
  EXPECT_FALSE(answer.has("\r\nSet-Cookie")) << answer.head;
}

TEST_F(Http, AHandlerThatForgetsItsReplyIsAnError) {
  start();
  EXPECT_EQ(ask(port(), "GET", "/forget").status, 500);
}

TEST_F(Http, KeepsConnectionsAndAnswersPipelinedRequestsInOrder) {
  start();
  Socket socket(port());
  socket.send(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
      "\r\nhiGET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = socket.receive_all();
  const size_t one = all.find("GET /1"), two = all.find("POST /2  hi"), three = all.find("GET /3");
  EXPECT_LT(one, two) << all;
  EXPECT_LT(two, three) << all;
  EXPECT_NE(three, std::string::npos) << all;
  EXPECT_TRUE(socket.ended());
}

TEST_F(Http, Speaks10WithoutChunksAndThenCloses) {
  start();
  Socket socket(port());
  socket.send("GET /stream HTTP/1.0\r\n\r\n");
  const std::string all = socket.receive_all();
  EXPECT_TRUE(socket.ended());
  EXPECT_EQ(all.find("chunked"), std::string::npos) << all;
  EXPECT_NE(all.find("\r\n\r\none two three"), std::string::npos) << all;
}

TEST_F(Http, TellsAClientThatAsksToGoOn) {
  start();
  Socket socket(port());
  socket.send(
      "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
      "Connection: close\r\n\r\n");
  EXPECT_NE(socket.receive().find("100 Continue"), std::string::npos);
  socket.send("ok");
  EXPECT_NE(socket.receive_all().find("POST /x  ok"), std::string::npos);
}

TEST_F(Http, RefusesWhatCouldBeReadInTwoWays) {
  start();
  struct Row {
    const char* what;
    const char* bytes;
    int status;
  };
  const Row rows[] = {
      {"length and chunks",
       "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n",
       400},
      {"two lengths",
       "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
      {"a negative length", "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
      {"a negative chunk",
       "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n",
       400},
      {"a chunk that is not a number",
       "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", 400},
      {"a body of 99 GB", "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 99000000000\r\n\r\n",
       413},
      {"no version", "GET /x\r\n\r\n", 400},
      {"another version", "GET /x HTTP/7.3\r\nHost: x\r\n\r\n", 505},
      {"a space before the colon", "GET /x HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"not HTTP at all", "\x16\x03\x01\x02\x05\x01\x03\x03 hello\r\n\r\n", 400},
  };
  for (const Row& row : rows) {
    Socket socket(port());
    socket.send(row.bytes);
    const Answer answer = parsed(socket.receive_all());
    EXPECT_EQ(answer.status, row.status) << row.what << ": " << answer.head;
    EXPECT_TRUE(socket.ended()) << row.what;
  }
  EXPECT_EQ(handled(), 0);
  EXPECT_EQ(ask(port(), "GET", "/after").status, 200);
}

TEST_F(Http, RefusesHeadersAndBodiesAboveTheirLimits) {
  HttpLimits limits;
  limits.header_bytes = 1000;
  limits.body_bytes = 1000;
  start(limits);
  EXPECT_EQ(ask(port(), "POST", "/", std::string(1000, 'x')).status, 200);
  EXPECT_EQ(ask(port(), "POST", "/", std::string(1001, 'x')).status, 413);
  Socket large(port());
  large.send(cat("GET / HTTP/1.1\r\nHost: x\r\nX: ", std::string(3000, 'x'), "\r\n\r\n"));
  EXPECT_EQ(parsed(large.receive_all()).status, 431);
}

TEST_F(Http, RequestsTogetherTakeNoMoreThanTheyMay) {
  HttpLimits limits;
  limits.body_bytes = 1000;
  limits.all_bodies = 2500;
  start(limits);
  const std::string head = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
  Socket one(port()), chunked(port());
  one.send(head);
  chunked.send("POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n");
  int status = 200;
  for (int i = 0; i < 500 && status == 200; ++i)
    status = ask(port(), "POST", "/x", std::string(900, 'x')).status;
  EXPECT_EQ(status, 503);
  one.send(std::string(1000, 'x'));
  EXPECT_NE(one.receive().find("200 OK"), std::string::npos);
  EXPECT_EQ(ask(port(), "POST", "/x", std::string(900, 'x')).status, 200);
}

TEST_F(Http, ClosesWhoIsTooSlow) {
  HttpLimits limits;
  limits.request_time = milliseconds(100);
  start(limits);
  Socket silent(port()), half(port());
  half.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  for (Socket* socket : {&silent, &half}) {
    socket->receive_all();
    EXPECT_TRUE(socket->ended());
  }
}

TEST_F(Http, ClosesWhoAsksNothingMore) {
  HttpLimits limits;
  limits.idle_time = milliseconds(100);
  start(limits);
  Socket idle(port());
  idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(idle.receive_all().find("200 OK"), std::string::npos);
  EXPECT_TRUE(idle.ended());
}

TEST_F(Http, IdleConnectionsDoNotKeepOthersWaiting) {
  start();
  std::vector<std::unique_ptr<Socket>> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(std::make_unique<Socket>(port()));
  for (size_t i = 0; i < 40; ++i) idle[i]->send("POST / HTTP/1.1\r\nContent-");
  EXPECT_EQ(ask(port(), "GET", "/").status, 200);
}

TEST_F(Http, ConnectionsAboveTheLimitAreClosedIfAllAreServed) {
  HttpLimits limits;
  limits.connections = 1;
  start(limits);
  Socket one(port());
  one.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_NE(kept(), nullptr);
  Socket two(port());
  two.receive();
  EXPECT_TRUE(two.ended());
}

// Peers that send nothing, a part of a head, or nothing more after their first request.
TEST_F(Http, SilentPeersGiveWayToThoseWhoSpeak) {
  for (const char* text : {"", "GET / HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    TearDown();
    HttpLimits limits;
    limits.connections = 8;
    start(limits);
    std::vector<std::unique_ptr<Socket>> silent;
    for (int i = 0; i < 20; ++i) {
      silent.push_back(std::make_unique<Socket>(port()));
      silent.back()->send(text);
      const bool answered = std::string_view(text).ends_with("\n\r\n");
      EXPECT_EQ(!answered || silent.back()->receive().find("200 OK") != std::string::npos, true);
    }
    EXPECT_EQ(ask(port(), "GET", "/").status, 200) << text;
    silent.front()->receive();
    EXPECT_TRUE(silent.front()->ended()) << text;
  }
}

TEST_F(Http, SeesThatAClientIsGone) {
  start();
  std::shared_ptr<HttpReply> reply;
  {
    Socket socket(port());
    socket.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    reply = kept();
    ASSERT_NE(reply, nullptr);
    EXPECT_FALSE(reply->gone());
  }
  EXPECT_TRUE(wait_until([&] { return reply->gone(); }));
  reply->send(200, {}, "unread");
}

// Bytes after the request are stored for later, and the end of the stream is still seen.
TEST_F(Http, SeesThatAClientIsGoneThatSentMoreThanItsRequest) {
  start();
  for (const char* more : {"\r\n", "GET /next HT"}) {
    std::shared_ptr<HttpReply> reply;
    {
      Socket socket(port());
      socket.send(cat("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n", more));
      reply = kept();
      ASSERT_NE(reply, nullptr);
    }
    EXPECT_TRUE(wait_until([&] { return reply->gone(); })) << more;
    kept_.reset();
  }
}

TEST_F(Http, TheNextRequestMayComeWhileTheFirstIsAnswered) {
  start();
  for (const bool whole : {true, false}) {
    Socket socket(port());
    socket.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::shared_ptr<HttpReply> reply = kept();
    ASSERT_NE(reply, nullptr);
    const std::string next = "GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    socket.send(whole ? next : next.substr(0, 12));
    ask(port(), "GET", "/");  // this request was sent later, so the server has read the next one
    reply->send(200, {}, "first");
    std::string all = socket.receive();  // the second reply may come along
    EXPECT_NE(all.find("first"), std::string::npos);
    if (!whole) socket.send(next.substr(12));
    all += socket.receive_all();
    EXPECT_NE(all.find("GET /next"), std::string::npos) << all;
    kept_.reset();
  }
}

// A reader would otherwise take the partial text for the whole.
TEST_F(Http, AStreamThatNobodyEndedIsNotWhole) {
  start();
  Socket socket(port());
  socket.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  std::shared_ptr<HttpReply> reply = kept();
  ASSERT_NE(reply, nullptr);
  reply->begin(200, {});
  reply->write("a part");
  kept_.reset();
  reply.reset();
  const std::string all = socket.receive_all();
  EXPECT_TRUE(socket.ended());
  EXPECT_TRUE(all.ends_with("6\r\na part\r\n")) << all;
}

// A connection is in lists of the server's own thread, which removes it whichever thread used it
// last.
TEST_F(Http, AConnectionThatAnotherThreadNeededLastIsTakenDownByTheServersOwn) {
  start();
  std::shared_ptr<HttpReply> reply;
  {
    Socket socket(port());
    socket.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_NE(reply = kept(), nullptr);
  }
  EXPECT_TRUE(wait_until([&] { return reply->gone(); }));
  kept_.reset();
  reply->send(200, {}, "unread");
  Socket other(port());
  {
    const std::lock_guard held(hold_);
    other.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(wait_until([&] { return holding_.load(); }));
    reply.reset();
    EXPECT_EQ(server_->connections(), 2);
  }
  EXPECT_NE(other.receive().find("200 OK"), std::string::npos);
  EXPECT_TRUE(wait_until([&] { return server_->connections() == 1; }));
}

TEST_F(Http, AClientThatDoesNotReadIsGoneWhenTooMuchWaits) {
  HttpLimits limits;
  limits.waiting_bytes = 1 << 20;
  start(limits);
  Socket socket(port());
  socket.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpReply> reply = kept();
  ASSERT_NE(reply, nullptr);
  reply->begin(200, {});
  int pieces = 0;
  while (!reply->gone() && ++pieces < 100000) reply->write(std::string(4096, 'x'));
  EXPECT_TRUE(reply->gone());
  reply->end();
}

TEST_F(Http, RequestsMayComeInAnyPieces) {
  start();
  std::mt19937 random(7);
  const std::string body = "{\"a\": \"some text that is longer than a piece\"}";
  const std::string request =
      cat("POST /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ", body.size(),
          "\r\n\r\n", body);
  for (int round = 0; round < 30; ++round) {
    Socket socket(port());
    for (size_t at = 0; at < request.size();) {
      const size_t count = 1 + random() % 40;
      socket.send(std::string_view(request).substr(at, count));
      at += count;
      if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    EXPECT_EQ(parsed(socket.receive_all()).body, "POST /p  " + body);
  }
}

// Damaged requests; LOOM_HTTP_CASES sets their number; 300 is the default.
TEST_F(Http, SurvivesRandomBytes) {
  const char* asked = std::getenv("LOOM_HTTP_CASES");
  const int rounds = asked != nullptr ? std::atoi(asked) : 300;
  HttpLimits limits;
  limits.request_time = milliseconds(2000);
  start(limits);
  std::mt19937 random(11);
  const std::string seeds[] = {
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
      "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "GET /stream?a=%zz HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
      "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
      "POST /p HTTP/1.0\r\nTransfer-Encoding: identity, chunked\r\n\r\nfffffffffffffffff\r\nx",
      "GET /p HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\nGET /p HTTP/1.1\r\nHost: y\r\n\r\n"};
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = seeds[random() % std::size(seeds)];
    for (size_t k = 1 + random() % 6; k > 0; --k) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, 1 + random() % 4); break;
        default: bytes.insert(at, 1 + random() % 4, static_cast<char>(random())); break;
      }
      if (bytes.empty()) bytes = "\n";
    }
    Socket socket(port());
    socket.send(bytes);
    if (round % 4 == 0) socket.receive(20);
  }
  EXPECT_EQ(ask(port(), "GET", "/alive").status, 200);
}

TEST(HttpListen, TakesSeveralAddressesAtOnePort) {
  const auto report_field = [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    reply->send(200, {}, "here");
  };
  Result<std::unique_ptr<HttpServer>> server = HttpServer::listen("127.0.0.2", 0, {}, report_field);
  ASSERT_TRUE(server.ok()) << server.error().str();
  const Status more = (*server)->also("127.0.0.1");
  ASSERT_TRUE(more.ok()) << more.error().str();
  EXPECT_FALSE((*server)->also("127.0.0.1").ok());
  EXPECT_FALSE((*server)->also("example").ok());
  std::thread thread([&] { (*server)->run(); });
  EXPECT_EQ(ask((*server)->port(), "GET", "/").body, "here");
  (*server)->stop();
  thread.join();
}

TEST(HttpListen, SaysWhatIsWrongWithAnAddress) {
  const auto nothing = [](HttpRequest, std::shared_ptr<HttpReply>) {};
  const auto name = HttpServer::listen("example", 0, {}, nothing);
  ASSERT_FALSE(name.ok());
  EXPECT_EQ(
      name.error().message,
      "no IPv4 or IPv6 number: example; take 127.0.0.1 for this machine alone, 0.0.0.0 for all");
  const auto first = HttpServer::listen("127.0.0.1", 0, {}, nothing);
  ASSERT_TRUE(first.ok());
  const auto second = HttpServer::listen("127.0.0.1", (*first)->port(), {}, nothing);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message,
            cat("cannot listen at 127.0.0.1 port ", (*first)->port(), ": Address already in use"));
}

}  // namespace
}  // namespace loom::core::test
