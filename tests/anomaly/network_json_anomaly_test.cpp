// Damage to a network description: cut at every byte, every single bit flipped, every byte
// replaced. An accepted text is a complete network: it writes a text that reads back as the same
// text. Nothing crashes.
#include "anomaly/damage.hpp"
#include "bridge/network_json.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::expect_plain_error;
using test::flip;

// Each kind of field, a link, shared weights, a number type, children.
const std::string kText =
    R"({"loom":1,"grid":[1,1,4,1],"input":[6],"cells":[)"
    R"({"at":[0,0,0,0],"type":"Dense","in":6,"out":6,"activation":"tanh","dtype":"int8"},)"
    R"({"at":[0,0,1,0],"type":"Dense","in":6,"out":6,"bias":true,"shared_with":[0,0,0,0]},)"
    R"({"at":[0,0,2,0],"type":"Residual","children":[{"type":"RMSNorm","width":6,"eps":1e-5}]},)"
    R"({"at":[0,0,3,0],"type":"Softmax","temperature":0.5,"link":{"from":[0,0,0,0],)"
    R"("feedback":true},"disabled":false}]})";

// Whether the text is accepted; then it is a valid network. An Error must be one line that names
// the file.
bool accepted(const std::string& text) {
  const Result<NetworkSpec> read = parse_network(text, "f");
  if (!read.ok()) {
    EXPECT_EQ(read.error().code, Code::bad_file);
    expect_plain_error(read.error());
    return false;
  }
  const std::string written = write_network(*read);
  const Result<NetworkSpec> again = parse_network(written, "again");
  EXPECT_TRUE(again.ok()) << again.error().str() << "\n" << text;
  if (again.ok()) {
    EXPECT_EQ(write_network(*again), written) << text;
  }
  return true;
}

TEST(NetworkJsonAnomaly, EveryTruncationIsRefused) {
  ASSERT_TRUE(accepted(kText));
  for (size_t size = 0; size < kText.size(); ++size)
    ASSERT_FALSE(accepted(std::string(kText.data(), size))) << size;
}

TEST(NetworkJsonAnomaly, EveryFlippedBitIsRefusedOrAnotherWholeNetwork) {
  size_t refused = 0;
  for (size_t i = 0; i < kText.size() * 8; ++i) {
    const std::string flipped = flip(kText, i);
    refused += accepted(flipped) ? 0 : 1;
  }
  // Only numbers, "standard" values and a few spaces can change unseen.
  EXPECT_GT(refused, kText.size() * 8 * 9 / 10);
}

TEST(NetworkJsonAnomaly, EveryByteReplacedByEveryOtherIsRefusedOrAnotherWholeNetwork) {
  for (size_t at = 0; at < kText.size(); ++at) {
    for (const char value : std::string("\0 09-e.,:\"\\{}[]azAZ\x7f\x80\xff", 22)) {
      std::string changed = kText;
      changed[at] = value;
      (void)accepted(changed);
    }
  }
}

TEST(NetworkJsonAnomaly, EveryByteLeftOutOrDoubledIsRefusedOrAnotherWholeNetwork) {
  for (size_t at = 0; at < kText.size(); ++at) {
    std::string without = kText, doubled = kText;
    without.erase(at, 1);
    doubled.insert(at, 1, kText[at]);
    (void)accepted(without);
    (void)accepted(doubled);
  }
}

}  // namespace
}  // namespace loom::core
