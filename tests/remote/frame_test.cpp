// Frames, messages, proofs and uploads by themselves.
#include "remote/frame.hpp"

#include <gtest/gtest.h>

#include <random>

#include "io/bytes/base64.hpp"
#include "remote/message.hpp"
#include "remote/secret.hpp"
#include "remote/upload.hpp"

namespace loom::core {
namespace {

TEST(DonateFrame, HasItsLengthLittleEndianBeforeIt) {
  const std::string frame = donate_frame(std::string(0x1234, 'x'));
  ASSERT_EQ(frame.size(), 4u + 0x1234);
  EXPECT_EQ(frame.substr(0, 4), std::string("\x34\x12\0\0", 4));
}

TEST(DonateFrame, LengthsComeBackUpToTheMostAndNoFurther) {
  for (const uint32_t length : {1u, 255u, 256u, 65536u, kDonateFrameMost}) {
    const Result<uint32_t> back = donate_length(donate_head(length));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, length);
  }
  for (const uint32_t length : {0u, kDonateFrameMost + 1, 0xffffffffu})
    EXPECT_FALSE(donate_length(donate_head(length)).ok()) << length;
}

TEST(DonateFrame, RoomFollowsWhatArrived) {
  const size_t length = kDonateFrameMost;
  EXPECT_EQ(donate_room(0, length), size_t{64} << 10);
  EXPECT_EQ(donate_room(64 << 10, length), size_t{128} << 10);
  EXPECT_EQ(donate_room(60 << 20, length), length);
  EXPECT_EQ(donate_room(0, 10), 10u);
}

TEST(DonateMessage, AnythingButAnObjectOfVersionOneWithATypeIsRefusedByName) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "the message"},
      {"[]", "JSON object"},
      {"{\"v\":1,\"type\":\"hello\"", "the message"},
      {"{\"type\":\"hello\"}", "v must be 1"},
      {"{\"v\":2,\"type\":\"hello\"}", "v must be 1"},
      {"{\"v\":1}", "type must be a text"},
      {"{\"v\":1,\"type\":3}", "type must be a text"},
  };
  for (const auto& [text, part] : rows) {
    const Result<JsonValue> message = read_donate_message(text);
    ASSERT_FALSE(message.ok()) << text;
    EXPECT_NE(message.error().str().find(part), std::string::npos) << message.error().str();
  }
  EXPECT_TRUE(read_donate_message(dump_json(donate_message("hello"))).ok());
}

TEST(DonateMessage, IdsAreWholeNumbersOf31Bits) {
  const auto ids = [](const char* list) {
    const Result<JsonValue> message = parse_json(std::string("{\"a\":") + list + "}", "test");
    return donate_ids(*message, "a");
  };
  EXPECT_EQ(*ids("[0,5,2147483647]"), (std::vector<int32_t>{0, 5, 2147483647}));
  for (const char* bad : {"[-1]", "[2147483648]", "[1.5]", "[\"1\"]", "3", "null", "[[1]]"})
    EXPECT_FALSE(ids(bad).ok()) << bad;
}

// FIPS 180-4's example, and HMAC as Python's hmac module computes it.
TEST(DonateSecret, HashesAndProofsAreThoseOfTheirStandards) {
  DonateDigest digest;
  digest.add("a");
  digest.add("bc");
  EXPECT_EQ(*digest.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_FALSE(digest.finish().ok());
  EXPECT_EQ(*donate_proof("a secret of 26 characters!", "0123456789abcdef"),
            "637c11c7acaee47c3eac12cfe333c6141f1abf95540b9afec904cb427b71012c");
  EXPECT_NE(*donate_challenge(), *donate_challenge());
  EXPECT_TRUE(same_donate_proof("abc", "abc"));
  EXPECT_FALSE(same_donate_proof("abc", "abd"));
  EXPECT_FALSE(same_donate_proof("abc", "abcd"));
}

struct UploadCase {
  const char* what;
  std::string config;
  int64_t length;
  std::string sha256;
  std::vector<std::tuple<int64_t, bool, std::string>> chunks;  // base64
  const char* error;                                           // empty if it is complete
};

Status run_upload(const UploadCase& c) {
  DonateUpload upload(std::make_shared<DonateAccount>(1000));
  LOOM_TRY(upload.begin(c.config, c.length, c.sha256));
  for (const auto& [index, last, text] : c.chunks) LOOM_TRY(upload.chunk(index, last, text));
  LOOM_TRY(upload.commit());
  return {};
}

TEST(DonateUpload, SaysWhatIsWrongWithWhatCame) {
  const std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  std::string upper = abc;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  const UploadCase cases[] = {
      {"whole, without a checksum", "{}", 3, "", {{0, true, "YWJj"}}, ""},
      {"whole, with one", "{}", 3, abc, {{0, false, "YWI="}, {1, true, "Yw=="}}, ""},
      {"a checksum in capitals", "{}", 3, upper, {{0, true, "YWJj"}}, ""},
      {"an empty chunk is one", "{}", 3, abc, {{0, false, ""}, {1, true, "YWJj"}}, ""},
      {"no config", "", 3, "", {}, "config_json is empty"},
      {"nothing announced", "{}", 0, "", {}, "bad weights_len"},
      {"less than nothing", "{}", -5, "", {}, "bad weights_len"},
      {"more than there may be", "{}", 1001, "", {}, "bad weights_len"},
      {"no checksum at all", "{}", 3, "abc", {}, "64 hexadecimal digits"},
      {"another checksum", "{}", 3, std::string(64, '0'), {{0, true, "YWJj"}}, "wrong checksum"},
      {"bad base64", "{}", 3, "", {{0, true, "YW*j"}}, "bad base64"},
      {"no padding", "{}", 3, "", {{0, true, "YW"}}, "bad base64"},
      {"a chunk left out", "{}", 3, "", {{0, false, "YQ=="}, {2, true, "Yw=="}}, "1 is the next"},
      {"a chunk twice", "{}", 3, "", {{0, false, "YQ=="}, {0, true, "Yw=="}}, "1 is the next"},
      {"not from 0", "{}", 3, "", {{1, true, "YWJj"}}, "0 is the next"},
      {"one after the last", "{}", 3, "", {{0, true, "YQ=="}, {1, true, "Yw=="}}, "after the last"},
      {"too much", "{}", 2, "", {{0, true, "YWJj"}}, "2 are missing"},
      {"too little", "{}", 4, "", {{0, true, "YWJj"}}, "3 of 4 bytes"},
  };
  for (const UploadCase& c : cases) {
    const Status done = run_upload(c);
    const std::string report = done.ok() ? std::string() : done.error().str();
    EXPECT_EQ(report.empty(), *c.error == '\0') << c.what << ": " << report;
    EXPECT_NE(report.find(c.error), std::string::npos) << c.what << ": " << report;
  }
}

TEST(DonateUpload, AfterAnErrorNothingOfItIsLeft) {
  auto account = std::make_shared<DonateAccount>(10);
  DonateUpload one(account), two(account);
  ASSERT_TRUE(one.begin("{}", 9, "").ok());
  ASSERT_TRUE(one.chunk(0, false, encode_base64("12345678")).ok());
  ASSERT_TRUE(two.begin("{}", 9, "").ok());
  EXPECT_NE(two.chunk(0, false, encode_base64("12345678")).error().str().find("together"),
            std::string::npos);
  EXPECT_FALSE(one.chunk(5, false, "").ok());
  EXPECT_FALSE(one.chunk(1, false, "").ok()) << "begins again with model_begin";
  ASSERT_TRUE(two.begin("{}", 9, "").ok());
  EXPECT_TRUE(two.chunk(0, false, encode_base64("12345678")).ok()) << "what one held is free";
}

TEST(DonateUpload, BytesLieAtAMultipleOf64HoweverTheyCame) {
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    std::string all(1 + random() % 5000, '\0');
    for (char& c : all) c = static_cast<char>(random());
    DonateUpload upload(std::make_shared<DonateAccount>(1 << 20));
    ASSERT_TRUE(upload.begin("{}", static_cast<int64_t>(all.size()), "").ok());
    int64_t index = 0;
    for (size_t at = 0; at < all.size();) {
      const size_t n = std::min<size_t>(1 + random() % 700, all.size() - at);
      ASSERT_TRUE(upload.chunk(index++, false, encode_base64(all.substr(at, n))).ok());
      at += n;
    }
    const auto model = upload.commit();
    ASSERT_TRUE(model.ok());
    const auto view = (*model)->bytes.view();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data()) % 64, 0u);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(view.data()), view.size()), all);
  }
}

}  // namespace
}  // namespace loom::core
