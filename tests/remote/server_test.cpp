// A server on loopback, and clients that do what they should and what they should not.
#include "remote/server.hpp"

#include <condition_variable>
#include <mutex>

#include "remote/secret.hpp"
#include "rig.hpp"

namespace loom::core::test {
namespace {

using std::chrono::milliseconds;

// Holds jobs up until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait(const DonateGoOn& go_on) {
    std::unique_lock lock(mutex_);
    while (!open_ && go_on()) changed_.wait_for(lock, milliseconds(5));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

std::shared_ptr<EchoModel> gated(Gate& gate) {
  auto model = std::make_shared<EchoModel>();
  model->wait = [&gate](const DonateGoOn& go_on) { gate.wait(go_on); };
  return model;
}

// Waits until the server's queue is as long, with so many under way.
void until(const DonateServer& server, int64_t depth, int64_t running) {
  EXPECT_TRUE(wait_until([&] {
    return server.jobs().depth() == depth && server.jobs().in_progress() == running;
  })) << "the queue never had "
      << depth << " waiting and " << running << " under way";
}

TEST(DonateServer, SaysHelloWithItsModeAndItsQueue) {
  const auto here = donate_server(echo_options());
  EXPECT_EQ(RawClient(*here).hear(),
            R"({"v":1,"type":"hello","mode":"local_lm","role":"server","local_lm_path":"echo",)"
            R"("queue_capacity":64})");
  DonateOptions options = push_options();
  options.queue = 3;
  const auto pushed = donate_server(options);
  EXPECT_EQ(RawClient(*pushed).hear(),
            R"({"v":1,"type":"hello","mode":"model_push","role":"server","queue_capacity":3})");
}

TEST(DonateServer, MountsWhatIsPushedAndAnswersJobsByTheirId) {
  const auto server = donate_server(push_options());
  RawClient client(*server);
  client.hear();
  client.say(R"({"v":1,"type":"hello","mode":"model_push","role":"client"})");
  client.say(begin_message(6));
  client.say(chunk_message(0, "abc", false));
  client.say(chunk_message(1, "def", true));
  EXPECT_EQ(client.ask(kCommit), R"({"v":1,"type":"model_status","ok":true,"message":"mounted"})");
  EXPECT_EQ(client.ask(infer_message("one", "[7,8]")),
            R"({"v":1,"type":"infer_result","job_id":"one","ok":true,"output_ids":[7,8,2],)"
            R"("queue_depth":0})");
  EXPECT_EQ(client.ask(prompt_message("two", "hi")),
            R"({"v":1,"type":"prompt_result","job_id":"two","ok":true,"text":"[hi]",)"
            R"("queue_depth":0})");
  EXPECT_EQ(client.ask(kQueueStatus),
            R"({"v":1,"type":"queue_status","depth":0,"capacity":64,"in_progress":0})");
}

TEST(DonateServer, AnswersWhatIsWrongWithAMessageAndGoesOn) {
  const auto local = donate_server(echo_options());
  const auto push = donate_server(push_options());
  struct Row {
    const DonateServer& server;
    std::string message, error;
  };
  const Row rows[] = {
      {*local, begin_message(3), "wrong mode"},
      {*local, chunk_message(0, "a", true), "wrong mode"},
      {*local, std::string(kCommit), "wrong mode"},
      {*push, infer_message("a", "[1]"), "model not mounted"},
      {*push, prompt_message("a", "x"), "model not mounted"},
      {*push, chunk_message(0, "a", true), "without a model_begin"},
      {*push, std::string(kCommit), "without a model_begin"},
      {*push, begin_message(0), "bad weights_len"},
      {*push, begin_message(uint64_t{1} << 40), "bad weights_len"},
      {*push, R"({"v":1,"type":"model_begin","weights_len":3})", "config_json is empty"},
      {*push, R"({"v":1,"type":"weights_chunk","index":0})", "data_b64"},
      {*local, R"({"v":1,"type":"dance"})", "unknown type dance"},
      {*local, R"({"v":2,"type":"infer"})", "v must be 1"},
      {*local, "no JSON", "the message"},
      {*local, infer_message("", "[1]"), "job_id must be"},
      {*local, infer_message("a", "[1,-1]"), "input_ids must be"},
      {*local, R"({"v":1,"type":"infer","job_id":"a","input_ids":[1],"max_tokens":-1})",
       "max_tokens must be"},
      {*local, prompt_message("a", ""), "prompt must be"},
  };
  for (const Row& row : rows) {
    RawClient client(row.server);
    client.hear();
    const std::string answer = client.ask(row.message);
    EXPECT_TRUE(has(answer, row.error)) << row.message << "\n" << answer;
    EXPECT_TRUE(has(client.ask(kQueueStatus), "\"depth\":0")) << row.message;
  }
}

TEST(DonateServer, RefusesAPushThatIsNotWhatItSaid) {
  const auto server = donate_server(push_options());
  struct Row {
    std::vector<std::string> messages;
    const char* answer;
  };
  const std::string zeros = cat(R"(,"weights_sha256":")", std::string(64, '0'), "\"");
  const Row rows[] = {
      {{begin_message(3, zeros), chunk_message(0, "abc", true), std::string(kCommit)},
       "wrong checksum"},
      {{begin_message(3), chunk_message(1, "abc", true)}, "0 is the next"},
      {{begin_message(3), R"({"v":1,"type":"weights_chunk","index":0,"data_b64":"*"})"},
       "bad base64"},
      {{begin_message(3), chunk_message(0, "abcd", true)}, "3 are missing"},
      {{begin_message(3), chunk_message(0, "bad", true), std::string(kCommit)}, "no model"},
      {{begin_message(4), chunk_message(0, "abc", true), std::string(kCommit)}, "3 of 4"},
  };
  for (const Row& row : rows) {
    RawClient client(*server);
    client.hear();
    for (const std::string& message : row.messages) client.say(message);
    const std::string answer = client.hear();
    EXPECT_TRUE(has(answer, row.answer)) << answer;
    EXPECT_TRUE(has(client.ask(infer_message("a", "[1]")), "model not mounted"));
  }
}

TEST(DonateServer, AFrameOfNoBytesOrTooManyEndsTheConnection) {
  const auto server = donate_server(echo_options());
  for (const uint32_t length : {0u, kDonateFrameMost + 1, 0xffffffffu}) {
    RawClient client(*server);
    client.hear();
    const DonateHead head = donate_head(length);
    client.send_bytes({reinterpret_cast<const char*>(head.data()), head.size()});
    EXPECT_TRUE(has(client.hear(), "a frame of")) << length;
    EXPECT_TRUE(client.ended()) << length;
  }
}

TEST(DonateServer, AFrameThatIsNotWholeInTimeEndsTheConnection) {
  DonateOptions options = echo_options();
  options.limits.time = milliseconds(200);
  options.limits.idle_time = kDeadline;  // a slow machine is not a silent client
  const auto server = donate_server(options);
  const std::string frame = donate_frame(kQueueStatus);
  for (const size_t cut : {size_t{1}, size_t{3}, size_t{4}, frame.size() - 1}) {
    RawClient client(*server);
    client.hear();
    client.send_bytes(std::string_view(frame).substr(0, cut));
    EXPECT_TRUE(has(client.hear(), "not whole in time")) << cut;
    EXPECT_TRUE(client.ended()) << cut;
  }
}

TEST(DonateServer, AClientThatIsSilentGoesUnlessItWaitsForAnAnswer) {
  Gate gate;
  DonateOptions options = echo_options(gated(gate));
  options.limits.idle_time = milliseconds(1000);  // for one that waits to say so
  const auto server = donate_server(options);
  RawClient waits(*server);
  waits.say(prompt_message("a", "x"));
  until(*server, 0, 1);
  waits.hear();
  RawClient silent(*server);  // and its end says that the time is over
  silent.hear();
  EXPECT_TRUE(silent.ended());
  gate.open();
  EXPECT_TRUE(has(waits.hear(), "[x]"));
  EXPECT_TRUE(waits.ended());
}

TEST(DonateServer, AsksForTheSecretAndAnswersNobodyElse) {
  DonateOptions options = echo_options();
  options.secret = "a secret of 26 characters!";
  const auto server = donate_server(options);
  const auto challenge = [](RawClient& client) {
    return client.hear_json().find("challenge")->text();
  };
  const auto hello = [](std::string_view proof) {
    return cat(R"({"v":1,"type":"hello","role":"client","proof":")", proof, "\"}");
  };
  RawClient good(*server), wrong(*server), none(*server), rude(*server), large(*server);
  const std::string used = *donate_proof(options.secret, challenge(good));
  good.say(hello(used));
  EXPECT_TRUE(has(good.ask(prompt_message("a", "x")), "[x]"));

  wrong.say(hello(*donate_proof("another secret of ours", challenge(wrong))));
  EXPECT_TRUE(has(wrong.hear(), "wrong secret"));
  EXPECT_TRUE(wrong.ended());
  none.hear();
  EXPECT_TRUE(has(none.ask(R"({"v":1,"type":"hello"})"), "no proof"));
  EXPECT_TRUE(none.ended());
  rude.hear();
  EXPECT_TRUE(has(rude.ask(prompt_message("a", "x")), "a secret is asked for"));
  EXPECT_TRUE(rude.ended());
  large.hear();
  const DonateHead head = donate_head(5000);
  large.send_bytes({reinterpret_cast<const char*>(head.data()), head.size()});
  EXPECT_TRUE(has(large.hear(), "at most 4096")) << "strangers have little room";
  RawClient replay(*server);
  replay.hear();
  EXPECT_TRUE(has(replay.ask(hello(used)), "wrong secret")) << "each connection has its challenge";
  EXPECT_TRUE(replay.ended());
}

TEST(DonateServer, ListensWhereOthersReachItOnlyWithASecretAndTls) {
  DonateOptions options = echo_options();
  options.port = 0;
  options.address = "0.0.0.0";
  const auto open = DonateServer::start(options);
  ASSERT_FALSE(open.ok());
  EXPECT_TRUE(has(open.error().str(), "--secret-file"));
  options.secret = "short";
  EXPECT_FALSE(DonateServer::start(options).ok());
  options.secret = "a secret of 26 characters!";
  const auto plain = DonateServer::start(options);
  ASSERT_FALSE(plain.ok());
  EXPECT_TRUE(has(plain.error().str(), "--tls-cert"));
  options.allow_plaintext = true;
  EXPECT_TRUE(DonateServer::start(options).ok());
}

TEST(DonateServer, AFullQueueSaysSoAndTheJobsBeforeAreAnswered) {
  Gate gate;
  DonateOptions options = echo_options(gated(gate));
  options.queue = 2;
  const auto server = donate_server(options);
  RawClient client(*server), other(*server);
  client.hear();
  other.hear();
  client.say(prompt_message("1", "a"));
  until(*server, 0, 1);
  client.say(prompt_message("2", "b"));
  client.say(infer_message("3", "[5]"));
  until(*server, 2, 1);
  EXPECT_TRUE(has(other.ask(prompt_message("4", "c")),
                  R"("type":"error","error":"queue full","job_id":"4")"));
  EXPECT_EQ(other.ask(kQueueStatus),
            R"({"v":1,"type":"queue_status","depth":2,"capacity":2,"in_progress":1})");
  gate.open();
  for (const char* job : {"\"1\"", "\"2\"", "\"3\""}) EXPECT_TRUE(has(client.hear(), job));
}

TEST(DonateServer, TwoClientsEachGetTheirOwnAnswersInOrder) {
  DonateOptions options = echo_options();
  options.queue = 1000;
  options.workers = 3;
  const auto server = donate_server(options);
  constexpr int kJobs = 150;
  const auto talk = [&](char name) {
    RawClient client(*server);
    client.hear();
    for (int i = 0; i < kJobs; ++i) {
      const std::string job = cat(std::string(1, name), i);
      client.say(i % 2 == 0 ? prompt_message(job, cat(job, std::string(1000, name)))
                            : infer_message(job, cat("[", i, "]")));
    }
    std::vector<int> visited(kJobs, 0);
    for (int i = 0; i < kJobs; ++i) {
      const JsonValue answer = client.hear_json();
      const JsonValue* id = answer.find("job_id");
      ASSERT_NE(id, nullptr);
      ASSERT_EQ(id->text().front(), name);
      const int job = std::atoi(id->text().c_str() + 1);
      ++visited[static_cast<size_t>(job)];
      const std::string text = dump_json(answer);
      EXPECT_TRUE(has(text, job % 2 == 0 ? cat("[", id->text(), std::string(1000, name), "]")
                                         : cat("[", job, ",1]")));
    }
    EXPECT_EQ(visited, std::vector<int>(kJobs, 1));
  };
  std::thread one([&] { talk('a'); }), two([&] { talk('b'); });
  one.join();
  two.join();
}

// One begins a large frame and stops, one never takes its answers.
TEST(DonateServer, SlowClientsHoldNobodyUp) {
  DonateOptions options = echo_options();
  options.queue = 100000;
  const auto server = donate_server(options);
  RawClient half(*server), deaf(*server), other(*server);
  const DonateHead head = donate_head(kDonateFrameMost);
  half.send_bytes({reinterpret_cast<const char*>(head.data()), head.size()});
  std::thread floods([&] {
    const std::string large = prompt_message("a", std::string(1 << 20, 'x'));
    for (int i = 0; i < 40; ++i) {
      if (!deaf.say(large)) return;
    }
  });
  other.hear();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(has(other.ask(prompt_message("b", "hi")), "[hi]"));
  // Nothing more is read from it once a megabyte of answers waits; taking them lets it go on.
  for (int i = 0; i < 41; ++i) EXPECT_FALSE(deaf.hear().empty());
  floods.join();
}

TEST(DonateServer, AClientThatLeavesTakesItsJobsWithIt) {
  Gate gate;
  const auto server = donate_server(echo_options(gated(gate)));
  {
    RawClient leaves(*server);
    leaves.hear();
    leaves.say(prompt_message("1", "a"));
    leaves.say(prompt_message("2", "a"));
    until(*server, 1, 1);
  }
  until(*server, 0, 0);
}

TEST(DonateServer, StoppingAnswersWhatWaitsAndLetsWhatRunsEnd) {
  Gate gate;
  const auto server = donate_server(echo_options(gated(gate)));
  RawClient client(*server);
  client.hear();
  client.say(prompt_message("1", "a"));
  client.say(prompt_message("2", "b"));
  until(*server, 1, 1);
  std::thread opens([&] {
    until(*server, 0, 1);  // what waits is taken first when a server stops
    gate.open();
  });
  EXPECT_TRUE(server->stop(kDeadline));
  opens.join();
  std::string answers = client.hear() + client.hear();
  EXPECT_TRUE(has(answers, "[a]")) << answers;
  EXPECT_TRUE(has(answers, "the server stops")) << answers;
  EXPECT_TRUE(client.ended());
}

TEST(DonateServer, StoppingEndsWhatTakesTooLong) {
  Gate gate;
  const auto server = donate_server(echo_options(gated(gate)));
  RawClient client(*server);
  client.hear();
  client.say(prompt_message("1", "a"));
  until(*server, 0, 1);
  EXPECT_FALSE(server->stop(milliseconds(50)));
  EXPECT_TRUE(has(client.hear(), "stopped"));
}

TEST(DonateServer, AboveTheLimitOfConnectionsTheNewestIsClosedIfAllAwaitAnAnswer) {
  Gate gate;
  DonateOptions options = echo_options(gated(gate));
  options.limits.connections = 1;
  const auto server = donate_server(options);
  RawClient one(*server);
  one.hear();
  one.say(prompt_message("1", "a"));
  until(*server, 0, 1);
  EXPECT_TRUE(RawClient(*server).ended());
  gate.open();
  EXPECT_TRUE(has(one.hear(), "a"));
}

TEST(DonateServer, SilentPeersGiveWayToThoseWhoSpeak) {
  DonateOptions options = echo_options();
  options.limits.connections = 2;
  const auto server = donate_server(options);
  RawClient one(*server), two(*server);
  one.hear();
  two.hear();
  RawClient three(*server);
  three.hear();
  EXPECT_TRUE(has(three.ask(kQueueStatus), "depth"));
  EXPECT_TRUE(one.ended());
}

TEST(DonateServer, LargeFramesOfAllTogetherAreBounded) {
  DonateOptions options = echo_options();
  options.limits.frames = 100000;
  const auto server = donate_server(options);
  RawClient large(*server), small(*server);
  large.hear();
  small.hear();
  large.say(prompt_message("a", std::string(200000, 'x')));
  EXPECT_TRUE(has(large.hear(), "too many large frames"));
  EXPECT_TRUE(has(small.ask(prompt_message("a", std::string(50000, 'x'))), "xx"));
}

}  // namespace
}  // namespace loom::core::test
