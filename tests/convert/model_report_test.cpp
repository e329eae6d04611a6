// How `loom info` and `loom diff` describe layers.
#include "convert/model_report.hpp"

#include <gtest/gtest.h>

#include "bridge/network_json.hpp"

namespace loom::core::test {
namespace {

NetworkSpec graph(const std::string& from) {
  return parse_network(R"({"loom": 1, "input": [4], "layers": [{"type": "Graph", "nodes": [
      {"name": "wide", "type": "Dense", "in": 4, "out": 4},
      {"type": "Unary", "function": "relu"},
      {"name": "sum", "from": [")" +
                           from + R"(", "1"], "type": "Binary", "function": "add"}]}]})",
                       "net.json")
      .or_exit();
}

TEST(Settings, OfAGraphNameItsInputsAndOutputs) {
  const NetworkSpec net = graph("wide");
  const LayerConfig& layer = net.grid.cell(0)->layer;
  EXPECT_EQ(settings_of(layer), "3 nodes, inputs input, outputs sum");
  EXPECT_EQ(graph_text(layer), "wide(input), 1(wide), sum(wide, 1); outputs sum");
  const NetworkSpec other = graph("input");
  EXPECT_EQ(graph_text(other.grid.cell(0)->layer),
            "wide(input), 1(wide), sum(input, 1); outputs sum");
}

TEST(Settings, OfTheNodesOfAGraphNameWhatTheyRead) {
  const NetworkSpec net = graph("wide");
  ModelReport report;
  report.network =
      std::make_shared<const Network>(Network::finalize(net.grid, net.input.after(1)).or_exit());
  std::vector<std::string> notes;
  report_layers(report, [&](const LayerReport& r) { notes.push_back(r.notes); });
  EXPECT_EQ(notes, (std::vector<std::string>{"", "wide of input", "1 of wide", "sum of wide, 1"}));
}

}  // namespace
}  // namespace loom::core::test
