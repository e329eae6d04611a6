// The client against the server, with the model of the tree: what is computed far away is what is
// computed here.
#include "remote/client.hpp"

#include <future>

#include "rig.hpp"
#include "serve/stories.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

std::unique_ptr<DonateClient> connected(const DonateServer& server, std::string secret = {}) {
  DonateClientOptions options;
  options.to = cat("127.0.0.1:", server.port());
  options.secret = std::move(secret);
  options.connect_seconds = options.seconds = std::chrono::duration<double>(kDeadline).count();
  Result<std::unique_ptr<DonateClient>> client = DonateClient::connect(options);
  EXPECT_TRUE(client.ok()) << client.error().str();
  return std::move(*client);
}

const std::string& stories_file() {
  static const std::string file =
      read_file(loom_test::source_path("models/stories.entity")).value_or("");
  return file;
}

DonateOptions mounting_options(int64_t workers = 1) {
  std::vector<Engine> engines;
  for (int64_t i = 0; i < workers; ++i) engines.push_back(*Engine::create({.threads = 1}));
  DonateOptions options;
  options.workers = workers;
  options.mount = donate_mount(std::move(engines), 128);
  return options;
}

constexpr const char* kBegins[] = {"Once upon a time", "Tom had a red ball.", "Lily and her dog"};

TEST(DonateClient, ATextThatIsNotUtf8IsRefused) {
  const auto server = donate_server(echo_options());
  const auto client = connected(*server);
  for (const char* text : {"\xff", "a\xc3", "\xed\xa0\x80"}) {
    const Result<std::string> answer = client->prompt(text, 1);
    ASSERT_FALSE(answer.ok()) << *answer;
    EXPECT_EQ(answer.error().code, Code::invalid_argument);
    EXPECT_EQ(answer.error().message, "the prompt is not UTF-8; convert it first");
  }
  EXPECT_EQ(client->prompt("gr\xc3\xbc\xc3\x9f", 1).value_or(""), "[gr\xc3\xbc\xc3\x9f]");
  const auto pushing = donate_server(push_options());
  EXPECT_FALSE(connected(*pushing)->push("model", "{\"name\":\"\xff\"}").ok());
}

// A server that sends given answers to any request.
class Script final : public NetClient {
 public:
  explicit Script(const std::vector<std::string>& messages) {
    for (const std::string& message : messages) bytes_ += donate_frame(message);
  }
  Status send(std::string_view, double) override { return {}; }
  bool readable(double seconds) override { return seconds > 0; }  // nothing comes unasked
  Result<std::string> receive(double) override { return std::exchange(bytes_, {}); }

 private:
  std::string bytes_;
};

TEST(DonateClient, ARefusalWithoutAWordIsStillTold) {
  const std::string hello =
      R"({"v":1,"type":"hello","mode":"local_lm","role":"server","local_lm_path":"x"})";
  const std::string push_hello = R"({"v":1,"type":"hello","mode":"model_push","role":"server"})";
  const auto client = [](const std::vector<std::string>& messages) {
    return std::move(*DonateClient::over({}, "there", std::make_unique<Script>(messages)));
  };
  for (const char* error : {R"({"v":1,"type":"error","error":""})", R"({"v":1,"type":"error"})"}) {
    const Result<std::string> text = client({hello, error})->prompt("Once", 1);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().message, "refused") << error;
  }
  const char* status = R"({"v":1,"type":"model_status","ok":false,"message":""})";
  EXPECT_EQ(client({push_hello, status})->push("bytes", "{}").error().message, "refused");
}

TEST(DonateClient, AModelThatIsPushedWritesWhatItWritesHere) {
  const Model here = stories();
  const auto server = donate_server(mounting_options());
  const auto client = connected(*server);
  ASSERT_FALSE(stories_file().empty());
  int64_t report = 0;
  const Status pushed = client->push(stories_file(), "{}", [&](int64_t done, int64_t total) {
    EXPECT_GT(done, report);
    EXPECT_EQ(total, static_cast<int64_t>(stories_file().size()));
    report = done;
    return true;
  });
  ASSERT_TRUE(pushed.ok()) << pushed.error().str();
  EXPECT_EQ(report, static_cast<int64_t>(stories_file().size()));
  for (const char* begin : kBegins) {
    Asked asked{*here.tokenize(begin), {.max_tokens = 24}};
    const Generation text = alone(here, asked);
    std::vector<TokenId> ids = asked.prompt;
    ids.insert(ids.end(), text.token_ids.begin(), text.token_ids.end());
    EXPECT_EQ(client->infer(asked.prompt, 24).value_or(std::vector<TokenId>()), ids);
    EXPECT_EQ(client->prompt(begin, 24).value_or(""), text.text);
  }
}

TEST(DonateClient, AModelThatIsThereIsAskedInBothWays) {
  const Model here = stories();
  DonateOptions options;
  options.model = *donate_model({here}, 128);
  options.name = "stories.entity";
  const auto server = donate_server(options);
  const auto client = connected(*server);
  EXPECT_EQ(client->mode(), "local_lm");
  EXPECT_EQ(client->model(), "stories.entity");
  Asked asked{*here.tokenize(kBegins[0]), {.max_tokens = kDonatePromptTokens}};
  EXPECT_EQ(client->prompt(kBegins[0], 0).value_or(""), alone(here, asked).text);
  const auto ids = client->infer(asked.prompt, 0);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->size(), asked.prompt.size() + kDonateInferTokens);
  const Status pushed = client->push("abc", "{}");
  EXPECT_TRUE(has(pushed.error().str(), "wrong mode"));
  const std::vector<int32_t> none, large = {1, 1 << 30};
  EXPECT_TRUE(has(client->infer(none, 1).error().str(), "input_ids is empty"));
  EXPECT_TRUE(has(client->infer(large, 1).error().str(), "the model has"));
  const std::vector<int32_t> several(500, 5);
  EXPECT_TRUE(has(client->infer(several, 1).error().str(), "128")) << "longer than its context";
  EXPECT_TRUE(client->infer(asked.prompt, 1).ok()) << "and goes on";
}

TEST(DonateClient, WhatIsNoModelIsRefusedAndTheOneBeforeStays) {
  const auto server = donate_server(mounting_options());
  const auto client = connected(*server);
  EXPECT_TRUE(has(client->push("no model at all", "{}").error().str(), "the pushed model"));
  EXPECT_TRUE(has(client->prompt("x", 1).error().str(), "model not mounted"));
  ASSERT_TRUE(client->push(stories_file(), "{}").ok());
  EXPECT_FALSE(client->push(stories_file().substr(0, 100000), "{}").ok());
  std::string damaged = stories_file();
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_FALSE(client->push(damaged, "{}").ok());
  EXPECT_TRUE(client->prompt("Once upon a time", 4).ok());
}

TEST(DonateClient, APushAboveTheLimitEndsAtItsBeginning) {
  DonateOptions options = mounting_options();
  options.max_bytes = 1 << 20;
  const auto server = donate_server(options);
  const auto client = connected(*server);
  EXPECT_TRUE(has(client->push(stories_file(), "{}").error().str(), "bad weights_len"));
}

TEST(DonateClient, APushCanBeStopped) {
  const auto server = donate_server(mounting_options());
  const auto client = connected(*server);
  const Status pushed = client->push(stories_file(), "{}", [](int64_t, int64_t) { return false; });
  ASSERT_FALSE(pushed.ok());
  EXPECT_EQ(pushed.error().code, Code::cancelled);
}

TEST(DonateClient, AnswersAreToldApartByTheirJobs) {
  const auto server = donate_server(mounting_options(2));
  const auto client = connected(*server);
  ASSERT_TRUE(client->push(stories_file(), "{}").ok());
  std::vector<std::string> alone_texts, jobs;
  for (int i = 0; i < 12; ++i) alone_texts.push_back(*client->prompt(kBegins[i % 3], 1 + i));
  for (int i = 0; i < 12; ++i) jobs.push_back(*client->send_prompt(kBegins[i % 3], 1 + i));
  EXPECT_EQ(client->queue()->capacity, 64);
  for (int i = 11; i >= 0; --i) {
    const auto answer = client->answer(jobs[static_cast<size_t>(i)]);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->find("text")->text(), alone_texts[static_cast<size_t>(i)]);
  }
}

TEST(DonateClient, TwoClientsPushAndAskAtTheSameTime) {
  const auto server = donate_server(mounting_options(2));
  const auto talk = [&] {
    const auto client = connected(*server);
    std::vector<std::string> texts;
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(client->push(stories_file(), "{}").ok());
      for (const char* begin : kBegins) texts.push_back(client->prompt(begin, 8).value_or("none"));
    }
    return texts;
  };
  auto other = std::async(std::launch::async, talk);
  const std::vector<std::string> mine = talk();
  EXPECT_EQ(mine, other.get());
  EXPECT_NE(mine.front(), "none");
}

TEST(DonateClient, NeedsTheSecretThatIsAskedFor) {
  DonateOptions options = echo_options();
  options.secret = "a secret of 26 characters!";
  const auto server = donate_server(options);
  EXPECT_EQ(connected(*server, options.secret)->prompt("x", 0).value_or(""), "[x]");
  DonateClientOptions mine;
  mine.to = cat("127.0.0.1:", server->port());
  EXPECT_TRUE(has(DonateClient::connect(mine).error().str(), "--secret-file"));
  const auto wrong = connected(*server, "another secret of ours");
  EXPECT_TRUE(has(wrong->prompt("x", 0).error().str(), "wrong secret"));
}

TEST(DonateClient, SaysWhereNobodyAnswersAndWhereItIsStopped) {
  DonateClientOptions options;
  options.to = "127.0.0.1:99999";
  EXPECT_EQ(DonateClient::connect(options).error().code, Code::invalid_argument);
  const ClosedPort closed;
  options.to = cat("127.0.0.1:", closed.port());
  EXPECT_EQ(DonateClient::connect(options).error().code, Code::io_error);

  auto model = std::make_shared<EchoModel>();
  model->wait = [](const DonateGoOn& go_on) {
    while (go_on()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  const auto server = donate_server(echo_options(model));
  options.to = cat("127.0.0.1:", server->port());
  int asked = 0;
  options.go_on = [&] { return ++asked < 3; };
  const auto client = DonateClient::connect(options);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->prompt("x", 0).error().code, Code::cancelled);
}

}  // namespace
}  // namespace loom::core::test
