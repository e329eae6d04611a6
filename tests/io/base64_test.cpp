// The vectors of RFC 4648, section 10, and texts that are not Base64.
#include "io/bytes/base64.hpp"

#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::expect_error;

TEST(Base64, VectorsOfTheStandardGoBothWays) {
  const std::pair<const char*, const char*> rows[] = {{"", ""},
                                                      {"f", "Zg=="},
                                                      {"fo", "Zm8="},
                                                      {"foo", "Zm9v"},
                                                      {"foob", "Zm9vYg=="},
                                                      {"fooba", "Zm9vYmE="},
                                                      {"foobar", "Zm9vYmFy"},
                                                      {"\xfb\xff", "+/8="}};
  for (const auto& [bytes, text] : rows) {
    EXPECT_EQ(encode_base64(bytes), text);
    const auto back = decode_base64(text);
    ASSERT_TRUE(back.ok()) << back.error().str();
    EXPECT_EQ(*back, bytes);
  }
}

TEST(Base64, OtherTextsAreRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"Zg", "Base64 of 2 characters, must be a multiple of 4"},
      {"Zg=\n", "character 2 is not Base64"},
      {"Z===", "character 1 is not Base64"},
      {"====", "character 0 is not Base64"},
      {"Zg==Zg==", "character 2 is not Base64"},
      {"Zm-_", "character 2 is not Base64"},
      {"Zh==", "character 1 has bits of no byte"},
      {"Zm9=", "character 2 has bits of no byte"}};
  for (const auto& [text, message] : rows)
    expect_error(decode_base64(text), Code::bad_file, message);
}

}  // namespace
}  // namespace loom::core
