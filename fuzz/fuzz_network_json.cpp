// Any bytes as the description of a network: refused in one line, or a network that finalizes and
// whose text reads back to the same text.
#include <string>

#include "bridge/network_json.hpp"
#include "check.hpp"
#include "grid/network.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "net.json";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = loom::core::parse_network(text, where);
  if (!read.ok()) {
    CHECK(!read.error().message.empty());
    CHECK(read.error().str().find('\n') == std::string::npos);
    CHECK(read.error().offset >= -1 && read.error().offset <= static_cast<int64_t>(size));
    return 0;
  }
  const std::string written = loom::core::write_network(*read);
  const auto again = loom::core::parse_network(written, where);
  CHECK(again.ok());
  CHECK(loom::core::write_network(*again) == written);
  const auto network = loom::core::Network::finalize(read->grid, read->input.after(1));
  CHECK(network.ok());
  CHECK(network->output().count() > 0);
  return 0;
}
