// Absorbing over HTTP: what is stored and returned, and every refusal.
#include "serve/absorb_host.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "api/network/bridge_stream.hpp"
#include "client.hpp"
#include "loom/files.hpp"
#include "loom/layers.hpp"
#include "loom/proof.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::string_view kBinary = "Content-Type: application/vnd.loom.bridge+binary\r\n";

Network small_network(uint64_t seed = 3) {
  return Network::sequential({Dense{.in = 2, .out = 3}}, {.input = {2}, .seed = seed}).or_exit();
}

// The stream of a Dense of 2 x 3, with `off` added to its expected output.
std::string stream_of(const Network& net, float off = 0) {
  const std::vector<float> x = {1, 2, -1, 0.5f};
  const Tensor inputs = Tensor::view(x.data(), {2, 2});
  Tensor y = net.predict(inputs).or_exit();
  y.mutable_values<float>().or_exit()[1] += off;
  BridgeWriter writer;
  JsonValue graph = object("format", "onnx");
  writer.add(net.save_bytes(NetworkFormat::onnx).or_exit(), graph);
  JsonValue fixture = object("tolerance", object("abs", 1e-5, "rel", 1e-4));
  fixture.add("inputs", list(writer.add(inputs)));
  fixture.add("expected", list(writer.add(y)));
  return writer.sealed(object("schema", "bridge.stream/2", "name", "m", "source", "by hand 1: m",
                              "graph", std::move(graph), "fixture", std::move(fixture)));
}

class AbsorbedOverHttp : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) / cat("absorb_host_", std::random_device()(), "_", ::getpid());
    fs::create_directories(folder_ / "kept");
    start();
  }
  void TearDown() override {
    host_.reset();
    fs::remove_all(folder_);
  }
  AbsorbHostOptions options() const {
    AbsorbHostOptions out;
    out.folder = (folder_ / "kept").string();
    out.port = 0;
    return out;
  }
  void start(const HttpLimits& limits = {}) {
    host_.reset();
    AbsorbHostOptions how = options();
    how.http = limits;
    host_ = AbsorbHost::start(engine_, how).or_exit();
  }
  Answer ask(std::string_view method, std::string_view path, std::string_view body = {},
             std::string_view headers = {}) const {
    return test::ask(host_->port(), method, path, body,
                     cat("Authorization: Bearer ", host_->token(), "\r\n", headers));
  }
  Answer send(std::string_view path, std::string_view stream) const {
    return ask("POST", path, stream, kBinary);
  }
  // The one shape of all errors.
  static std::string code_of(const Answer& answer) {
    const JsonValue body = answer.json();
    for (const char* key : {"code", "message", "path", "hint"})
      EXPECT_NE(body.find(key), nullptr) << key << " is not in " << answer.body;
    EXPECT_TRUE(answer.has("application/problem+json") || answer.has("application/json"));
    return body.find("code") == nullptr ? "" : body.find("code")->text();
  }
  int64_t files() const {
    return std::distance(fs::directory_iterator(folder_ / "kept"), fs::directory_iterator());
  }

  const Engine engine_ = Engine::create({.threads = 1}).or_exit();
  fs::path folder_;
  std::unique_ptr<AbsorbHost> host_;
};

TEST_F(AbsorbedOverHttp, AStreamBecomesAFileWithItsProof) {
  const Network net = small_network();
  const Answer made = send("/v2/streams?id=net.1", stream_of(net));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.json().find("entity_id")->text(), "net.1");
  EXPECT_TRUE(made.json().find("report")->find("holds")->as_bool("it").or_exit());

  const Answer file = ask("GET", "/v2/entities/net.1");
  ASSERT_EQ(file.status, 200);
  const Network again =
      Network::load({.bytes = std::as_bytes(std::span(file.body)), .name = "net.entity"}).or_exit();
  EXPECT_TRUE(verify_proof(again).or_exit().holds);
  EXPECT_EQ(file.body, read_file((folder_ / "kept" / "net.1.entity").string()).or_exit());

  EXPECT_THAT(ask("GET", "/v2/streams/net.1/plan").body, HasSubstr("Dense"));
  const Answer compared = ask("GET", "/v2/compare/net.1/native/engine");
  EXPECT_EQ(compared.status, 200) << compared.body;
  EXPECT_TRUE(compared.json().find("holds")->as_bool("it").or_exit());
  EXPECT_EQ(code_of(ask("GET", "/v2/compare/net.1/native/wasm")), "not_found");
  const Answer health = ask("GET", "/v2/health");
  EXPECT_EQ(health.json().find("status")->text(), "ok");
  EXPECT_THAT(health.body, HasSubstr("bridge.stream/2"));
}

TEST_F(AbsorbedOverHttp, AnEntityIsAskedWithInputsOrWithItsProof) {
  const Network net = small_network();
  ASSERT_EQ(send("/v2/streams?id=net", stream_of(net)).status, 201);
  const std::vector<float> x = {0.5f, -3, 2, 2, 7, 1};
  BridgeWriter writer;
  JsonValue inputs = list(writer.add(Tensor::view(x.data(), {3, 2})));
  const auto asked = [&](std::string_view id) {
    return writer.sealed(
        object("schema", "bridge.run/2", "entity_id", std::string(id), "inputs", inputs));
  };
  const Answer ran = ask("POST", "/v2/runs", asked("net"), kBinary);
  ASSERT_EQ(ran.status, 200) << ran.body;
  const BridgeReader read =
      BridgeReader::open(std::as_bytes(std::span(ran.body)), "bridge.run/2", "reply").or_exit();
  const std::vector<Tensor> outputs = read.tensors(read.manifest(), "outputs").or_exit();
  ASSERT_EQ(outputs.size(), 1u);
  const Tensor expected = net.predict(Tensor::view(x.data(), {3, 2})).or_exit();
  EXPECT_TRUE(
      std::ranges::equal(outputs[0].values<float>().or_exit(), expected.values<float>().or_exit()));

  const Answer proof = ask("POST", "/v2/runs", R"({"entity_id": "net", "fixture": "proof"})");
  EXPECT_TRUE(proof.json().find("holds")->as_bool("it").or_exit()) << proof.body;
  EXPECT_EQ(code_of(ask("POST", "/v2/runs", asked("other"), kBinary)), "not_found");
  EXPECT_EQ(code_of(ask("POST", "/v2/runs", asked("../net"), kBinary)), "invalid_argument");
  EXPECT_EQ(code_of(ask("POST", "/v2/runs", R"({"entity_id": "net"})")), "invalid_argument");
}

TEST_F(AbsorbedOverHttp, WithoutTheTokenNothingIsTold) {
  const uint16_t port = host_->port();
  EXPECT_EQ(host_->token().size(), 64u);
  for (const std::string& header :
       {std::string(), cat("Authorization: Bearer ", host_->token(), "0\r\n"),
        cat("Authorization: Basic ", host_->token(), "\r\n"),
        cat("Authorization: Bearer ", std::string(64, '0'), "\r\n")}) {
    for (const char* path : {"/v2/health", "/v2/entities/net", "/nowhere"}) {
      const Answer answer = test::ask(port, "GET", path, {}, header);
      EXPECT_EQ(answer.status, 401) << path << header;
      EXPECT_EQ(code_of(answer), "unauthorized");
      EXPECT_THAT(answer.body, testing::Not(HasSubstr(host_->token())));
    }
  }
  const std::string other = AbsorbHost::start(engine_, options()).or_exit()->token();
  EXPECT_NE(other, host_->token());
}

TEST_F(AbsorbedOverHttp, OtherNamesAndPagesOfTheWebAreRefused) {
  for (const char* header : {"Host: evil.example\r\n", "Host: 10.0.0.1\r\n", "Host: 0.0.0.0\r\n",
                             "Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n",
                             "Host: 127.0.0.1\r\nOrigin: null\r\n"}) {
    const Answer answer = ask("GET", "/v2/health", {}, header);
    EXPECT_EQ(answer.status, 403) << header;
    EXPECT_EQ(code_of(answer), "forbidden") << header;
  }
  EXPECT_EQ(ask("GET", "/v2/health", {}, "Host: localhost:1\r\n").status, 200);
  EXPECT_EQ(ask("GET", "/v2/health", {}, "Host: [::1]:1\r\nOrigin: http://localhost\r\n").status,
            200);
}

TEST_F(AbsorbedOverHttp, IdsThatAreNoNamesReachNoFile) {
  ASSERT_TRUE(write_file((folder_ / "outside.entity").string(), "secret").ok());
  const std::string good = stream_of(small_network());
  const std::string long_one(129, 'a');
  for (const std::string& id :
       {std::string("../outside"), std::string("..%2Foutside"), std::string("%2e%2e"),
        std::string("a/b"), std::string("a%00b"), std::string(".hidden"), std::string(".."),
        std::string("a%20b"), std::string("a%5Cb"), std::string("\xc3\xa4"), long_one}) {
    EXPECT_NE(send("/v2/streams?id=" + id, good).status, 201) << id;
    const Answer answer = ask("GET", "/v2/entities/" + id);
    EXPECT_TRUE(answer.status == 400 || answer.status == 404) << id << answer.status;
    EXPECT_THAT(answer.body, testing::Not(HasSubstr("secret")));
  }
  EXPECT_EQ(files(), 0);
  fs::create_symlink(folder_ / "outside.entity", folder_ / "kept" / "link.entity");
  EXPECT_EQ(ask("GET", "/v2/entities/link").status, 404);
  EXPECT_NE(send("/v2/streams?id=link", good).status, 201);
  EXPECT_EQ(read_file((folder_ / "outside.entity").string()).or_exit(), "secret");
  EXPECT_EQ(send("/v2/streams?id=" + std::string(128, 'a'), good).status, 201);
}

TEST_F(AbsorbedOverHttp, ANameIsGivenOnceAndTheSameStreamMayComeAgain) {
  const std::string one = stream_of(small_network()), two = stream_of(small_network(4));
  ASSERT_EQ(send("/v2/streams?id=net", one).status, 201);
  EXPECT_EQ(code_of(send("/v2/streams?id=net", two)), "exists");
  const Answer unnamed = send("/v2/streams", one);
  EXPECT_EQ(unnamed.status, 201);
  EXPECT_EQ(unnamed.body, send("/v2/streams", one).body);
  EXPECT_NE(unnamed.body, send("/v2/streams", two).body);
}

TEST_F(AbsorbedOverHttp, WhatIsDamagedOrComputesSomethingElseIsNotKept) {
  const std::string whole = stream_of(small_network());
  for (size_t n = 0; n < whole.size(); n += 97)
    EXPECT_EQ(code_of(send("/v2/streams", whole.substr(0, n))), "bad_file") << n;
  const Answer other = send("/v2/streams", stream_of(small_network(), 0.5f));
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(code_of(other), "mismatch");
  EXPECT_FALSE(other.json().find("report")->find("holds")->as_bool("it").or_exit());
  BridgeWriter writer;
  JsonValue graph = object("format", "pickle");
  writer.add("graph", graph);
  const Answer pickle =
      send("/v2/streams",
           writer.sealed(object("schema", "bridge.stream/2", "name", "m", "graph", graph)));
  EXPECT_EQ(pickle.status, 422);
  EXPECT_EQ(pickle.json().find("problems")->elements().size(), 1u);
  EXPECT_EQ(files(), 0);
}

TEST_F(AbsorbedOverHttp, LimitsHoldBeforeAnythingIsRead) {
  HttpLimits limits;
  limits.body_bytes = 100;
  limits.header_bytes = 2048;
  start(limits);
  const Answer large = send("/v2/streams", stream_of(small_network()));
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(code_of(large), "too_large");
  const Answer header = ask("GET", "/v2/health", {}, "X-Much: " + std::string(4000, 'x') + "\r\n");
  EXPECT_EQ(header.status, 431);
  EXPECT_EQ(code_of(header), "too_large");
  Socket cut_off(host_->port());
  cut_off.send("nonsense\r\n\r\n");
  EXPECT_EQ(parsed(cut_off.receive_all()).status, 400);
  EXPECT_EQ(ask("GET", "/v2/health").status, 200);
}

TEST_F(AbsorbedOverHttp, OtherBodiesVerbsAndPathsAreRefused) {
  EXPECT_EQ(code_of(ask("POST", "/v2/streams", "{}")), "media_type");
  EXPECT_EQ(code_of(ask("GET", "/v2/streams")), "method_not_allowed");
  EXPECT_EQ(code_of(ask("DELETE", "/v2/entities/net")), "method_not_allowed");
  for (const char* path : {"/", "/v2", "/v2/", "/v1/streams", "/v2/entities", "/v2/entities/a/b"})
    EXPECT_EQ(code_of(ask("GET", path)), "not_found") << path;
}

TEST_F(AbsorbedOverHttp, AddressesThatOthersReachAreRefused) {
  for (const char* address : {"0.0.0.0", "::", "192.168.1.2", "example.org", ""}) {
    AbsorbHostOptions how = options();
    how.address = address;
    const auto host = AbsorbHost::start(engine_, how);
    ASSERT_FALSE(host.ok()) << address;
    EXPECT_EQ(host.error().code, Code::invalid_argument) << address;
  }
  AbsorbHostOptions how = options();
  how.folder = (folder_ / "none").string();
  EXPECT_EQ(AbsorbHost::start(engine_, how).error().code, Code::not_found);
}

}  // namespace
}  // namespace loom::core::test
