// Static files of a folder: types, ranges, the headers that isolate a page, and no way out.
#include <gmock/gmock.h>

#include <filesystem>
#include <mutex>

#include "client.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"
#include "serve/server.hpp"
#include "serve/static/site.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

namespace fs = std::filesystem;

class SiteServed : public testing::Test {
 protected:
  SiteServed() {
    fs::create_directories(folder_.path("site/docs"));
    write("site/index.html", "<!doctype html>home");
    write("site/docs/index.html", "docs");
    write("site/app.js", "0123456789");
    write("site/empty.wasm", "");
    write("site/a b.txt", "space");
    write("site/.hidden", "secret");
    write("secret.txt", "secret");
    fs::create_symlink(folder_.path("secret.txt"), folder_.path("site/link.txt"));
    fs::create_symlink("app.js", folder_.path("site/inside.js"));
  }
  void write(const std::string& name, std::string_view text) const {
    ASSERT_TRUE(write_file_atomic(folder_.path(name), std::as_bytes(std::span(text))).ok());
  }
  void start(LlmServerOptions options = {}) {
    options.port = 0;
    options.site = folder_.path("site");
    auto server = LlmServer::start(std::vector<ModelEntry>(), options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer get(std::string_view path, std::string_view headers = {}) const {
    return ask(server_->port(), "GET", path, {}, headers);
  }

  const TemporaryFolder folder_;
  std::unique_ptr<LlmServer> server_;
};

TEST_F(SiteServed, FilesHaveTheirTypesAndTheHeadersThatIsolateAPage) {
  start();
  const struct {
    std::string_view path, type, body;
  } rows[] = {{"/", "text/html; charset=utf-8", "<!doctype html>home"},
              {"/index.html?a=b", "text/html; charset=utf-8", "<!doctype html>home"},
              {"/docs/", "text/html; charset=utf-8", "docs"},
              {"/app.js", "text/javascript; charset=utf-8", "0123456789"},
              {"/inside.js", "text/javascript; charset=utf-8", "0123456789"},
              {"/a%20b.txt", "text/plain; charset=utf-8", "space"},
              {"/empty.wasm", "application/wasm", ""}};
  for (const auto& row : rows) {
    const Answer answer = get(row.path);
    EXPECT_EQ(answer.status, 200) << row.path;
    EXPECT_EQ(answer.body, row.body) << row.path;
    EXPECT_TRUE(answer.has(cat("Content-Type: ", row.type))) << row.path;
    EXPECT_TRUE(answer.has("Cross-Origin-Opener-Policy: same-origin")) << row.path;
    EXPECT_TRUE(answer.has("Cross-Origin-Embedder-Policy: require-corp")) << row.path;
    EXPECT_TRUE(answer.has("X-Content-Type-Options: nosniff")) << row.path;
  }
  const Answer head = ask(server_->port(), "HEAD", "/app.js");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.has("Content-Length: 10"));
  EXPECT_EQ(head.body, "");
  const Answer moved = get("/docs");
  EXPECT_EQ(moved.status, 308);
  EXPECT_TRUE(moved.has("Location: docs/"));
}

TEST_F(SiteServed, NoPathLeavesTheFolder) {
  start();
  for (const char* path : {"/../secret.txt", "/docs/../../secret.txt", "/%2e%2e/secret.txt",
                           "/..%2fsecret.txt", "/docs/..%5c..%5csecret.txt", "/link.txt",
                           "/.hidden", "/docs/./index.html", "/docs//index.html", "//etc/passwd",
                           "/%00", "/app.js%00.html", "/none", "/app.js/", "/C:/x"}) {
    const Answer answer = get(path);
    EXPECT_NE(answer.status, 200) << path;
    EXPECT_EQ(answer.body.find("secret\n"), std::string::npos) << path;
  }
  EXPECT_EQ(get("/none").status, 404);
  EXPECT_EQ(get("/", "Host: evil.test\r\n").status, 403);
  EXPECT_EQ(ask(server_->port(), "POST", "/", "{}").status, 405);
}

TEST_F(SiteServed, RangesAndUnchangedFilesAreAnswered) {
  start();
  const struct {
    std::string_view range;
    int status;
    std::string_view body, content_range;
  } rows[] = {{"bytes=2-4", 206, "234", "bytes 2-4/10"},
              {"bytes=7-", 206, "789", "bytes 7-9/10"},
              {"bytes=7-99", 206, "789", "bytes 7-9/10"},
              {"bytes=-3", 206, "789", "bytes 7-9/10"},
              {"bytes=-99", 206, "0123456789", "bytes 0-9/10"},
              {"bytes=10-", 416, "", "bytes */10"},
              {"bytes=-0", 416, "", "bytes */10"},
              {"bytes=4-2", 200, "0123456789", ""},
              {"bytes=1-2,4-5", 200, "0123456789", ""},
              {"lines=1-2", 200, "0123456789", ""}};
  for (const auto& row : rows) {
    const Answer answer = get("/app.js", cat("Range: ", row.range, "\r\n"));
    EXPECT_EQ(answer.status, row.status) << row.range;
    EXPECT_EQ(answer.body, row.body) << row.range;
    EXPECT_EQ(answer.has("Content-Range: "), !row.content_range.empty()) << row.range;
    EXPECT_TRUE(answer.has(row.content_range)) << row.range;
  }
  const std::string head = get("/app.js").head;
  const size_t at = head.find("ETag: ") + 6;
  const std::string tag = head.substr(at, head.find('\r', at) - at);
  const Answer unchanged = get("/app.js", cat("If-None-Match: ", tag, "\r\n"));
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_FALSE(unchanged.has("Content-Length"));
  EXPECT_EQ(get("/app.js", cat("If-Range: ", tag, "\r\nRange: bytes=0-0\r\n")).status, 206);
  EXPECT_EQ(get("/app.js", "If-Range: \"old\"\r\nRange: bytes=0-0\r\n").status, 200);
  write("site/app.js", "other");
  EXPECT_EQ(get("/app.js", cat("If-None-Match: ", tag, "\r\n")).body, "other");
}

TEST_F(SiteServed, ALargeFileIsReadInPiecesWhileItIsSent) {
  std::string large(5 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 2654435761u >> 24);
  write("site/large.bin", large);
  LlmServerOptions options;
  options.http.waiting_bytes = 1 << 20;
  std::mutex mutex;
  std::vector<std::string> log;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    log.push_back(line);
  };
  start(options);
  EXPECT_TRUE(get("/large.bin").body == large);
  EXPECT_TRUE(get("/large.bin", "Range: bytes=1000000-\r\n").body == large.substr(1000000));
  server_.reset();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_THAT(log.front(), testing::HasSubstr("\"bytes\":5242880"));
}

TEST_F(SiteServed, ASiteAloneNeedsNoKeyAndHasNoOtherRoutes) {
  LlmServerOptions options;
  options.address = "0.0.0.0";
  start(options);
  EXPECT_EQ(get("/").status, 200);
  EXPECT_EQ(get("/v1/models").status, 404);
  options.site = folder_.path("none");
  const auto server = LlmServer::start(std::vector<ModelEntry>(), options);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error().str(), testing::HasSubstr("there is no such folder for --site"));
}

TEST_F(SiteServed, ASiteTakesThePlaceOfTheChatPageBesideModels) {
  LlmServerOptions options;
  options.port = 0;
  options.site = folder_.path("site");
  options.service.name = "stories";
  options.service.scheduler.session.context = 64;
  options.keys = {"secret"};
  auto server = LlmServer::start(stories(), options);
  ASSERT_TRUE(server.ok()) << server.error().str();
  server_ = std::move(*server);
  EXPECT_EQ(get("/").body, "<!doctype html>home");
  EXPECT_EQ(get("/page/page.css").status, 404);
  EXPECT_EQ(get("/v1/models").status, 401);
  EXPECT_EQ(get("/v1/models", "X-Api-Key: secret\r\n").status, 200);
}

}  // namespace
}  // namespace loom::core::test
