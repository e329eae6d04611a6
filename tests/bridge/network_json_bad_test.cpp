// More bad network descriptions, each with the exact text of its refusal: damage below the format
// (JSON itself), wrong kinds of values, children, links, sharing. network_json_test.cpp covers
// single fields.
#include "bridge/network_json_testing.hpp"

namespace loom::core {
namespace {

using test::BadNetwork;
using test::expect_refused;
using test::kDense;

const std::vector<BadNetwork> kJson = {
    {"", "at byte 0: expected a value, found the end of the text"},
    {"null", "at byte 0: expected an object that describes a network, found null"},
    {"\"network\"", "at byte 0: expected an object that describes a network, found \"network\""},
    {"{", "at byte 1: expected a key or '}', found the end of the text"},
    {"{}}", "at byte 2: expected the end of the text, found '}'"},
    {R"({"loom":1,})", "at byte 10: expected a key after ',', found '}'"},
    {R"({"loom":1 "input":[3]})", "at byte 10: expected ',' or '}', found a string"},
    {R"({"loom":1,"loom":1})", "at byte 10: duplicate key \"loom\""},
    {R"({'loom':1})", "at byte 1: expected a key or '}', found '''"},
    {R"({"loom":01})", "at byte 9: expected ',' or '}', found '1'"},
    {R"({"loom":1,"input":[3],"layers":[{"type":"Dense","in":1e999}]})",
     "at byte 53: this number is too large for a 64-bit real"},
    {"{\"loom\":1,\"\xff\":2}", "at byte 11: invalid UTF-8 in a string: byte 0xff"},
    {R"({"loom":1,"a\nb":2})",
     "at byte 17: a\\x0ab: unknown key; a network has loom, input, grid, cells, layers"},
    {std::string(100, '['), "at byte 64: nested deeper than 64 levels"},
    {"\xEF\xBB\xBF{}", "at byte 0: starts with a byte order mark; save it as plain UTF-8"},
    {R"({"loom":"1"})", "at byte 8: loom: expected 1, the version of the form, found \"1\""},
    {R"({"loom":1.5})", "at byte 8: loom: expected 1, the version of the form, found 1.5"},
    {R"({"loom":null})", "at byte 8: loom: expected 1, the version of the form, found null"},
    {R"({"loom":1,"input":3})", "at byte 18: input: expected a list of 1 to 5 integers, found 3"},
    {R"({"loom":1,"input":[1,1,1,1,1,1]})",
     "at byte 18: input: expected a list of 1 to 5 integers, found 6"},
    {R"({"loom":1,"input":[3.0]})",
     "at byte 19: input[0]: expected an integer from 1 to 16777216, found 3.0"},
    {R"({"loom":1,"input":[3,null]})",
     "at byte 21: input[1]: expected an integer from 1 to 16777216, found null"},
    {R"({"loom":1,"input":[16777217],"layers":[]})",
     "at byte 19: input[0]: expected an integer from 1 to 16777216, found 16777217"},
    {R"({"loom":1,"input":[3],"layers":null})",
     "at byte 31: layers: expected a list of layers, found null"},
    {R"({"loom":1,"input":[3],"grid":{},"cells":[]})",
     "at byte 29: grid: expected a list of 4 integers, found an object"},
    {R"({"loom":1,"input":[3],"grid":[1,1,1,-1],"cells":[]})",
     "at byte 36: grid[3]: expected an integer from 1 to 16777216, found -1"},
    {R"({"loom":1,"input":[3],"grid":[1,1,1,1],"cells":{}})",
     "at byte 47: cells: expected a list of cells, found an object"},
    {R"({"loom":1,"input":[3],"grid":[1,1,1,1],"cells":[7]})",
     "at byte 48: cells[0]: expected an object, found 7"},
    {R"({"loom":1,"input":[3],"layers":[[]]})",
     "at byte 32: layers[0]: expected an object, found an array"},
};

TEST(BadNetworkJson, IsRefusedForItsJson) {
  for (const BadNetwork& bad : kJson) expect_refused(bad.text, bad.message);
}

const std::vector<BadNetwork> kLayers = {
    {R"({"type":"Dense","in":-3,"out":3})",
     "at byte 53: layers[0].in: expected an integer from 1 to 16777216, found -3"},
    {R"({"type":"Dense","in":[3],"out":3})",
     "at byte 53: layers[0].in: expected an integer from 1 to 16777216, found an array"},
    {R"({"type":"Dense","in":9223372036854775808,"out":3})",
     "at byte 53: layers[0].in: expected an integer from 1 to 16777216, found "
     "9223372036854775808"},
    {R"({"type":"Dense","in":3,"out":3,"type2":1})",
     "at byte 71: layers[0].type2: unknown key; Dense has in, out, bias, activation, soft_cap, "
     "scale"},
    {R"({"type":"dense","in":3,"out":3,"disabled":null})",
     std::string("at byte 40: layers[0].type: unknown layer 'dense'; known are Dense, ") +
         "MultiHeadAttention, SwiGLU, RMSNorm, CNN1, CNN2, CNN3, RNN, LSTM, LayerNorm, "
         "ConvTransposed1D, ConvTransposed2D, ConvTransposed3D, Embedding, KMeans, Softmax, "
         "Parallel, Sequential, Residual, GRU, Dropout, BatchNorm, GroupNorm, InstanceNorm, Pool, "
         "Flatten, Reshape, Permute, Pad, Upsample, PixelShuffle" +
         test::unreleased_layers()},
    {R"({"type":"Dense","in":3,"out":3,"link":{}})",
     "at byte 70: layers[0].link: unknown key; Dense has in, out, bias, activation, soft_cap, "
     "scale"},
    {R"({"type":"Residual","children":{}})",
     "at byte 62: layers[0].children: expected a list of layers, found an object"},
    {R"({"type":"Residual","children":[1]})",
     "at byte 63: layers[0].children[0]: expected an object, found 1"},
    {R"({"type":"Residual","children":[{}]})",
     "at byte 63: layers[0].children[0]: \"type\" is required, but absent"},
    {R"({"type":"Residual","children":[{"type":"Dense","in":3,"out":0}]})",
     "at byte 92: layers[0].children[0].out: expected an integer from 1 to 16777216, found 0"},
    {R"({"type":"Residual","children":[{"type":"Dense","in":3,"out":2}]})",
     "cell (0, 0, 0, 0) does not fit the input: Residual: its children turn [1, 3] into [1, 2]; "
     "the shape must stay the same"},
    {R"({"type":"Sequential","children":[{"type":"Dense","in":3,"out":2},)"
     R"({"type":"Dense","in":3,"out":2}]})",
     "cell (0, 0, 0, 0) does not fit the input: child 1 of Sequential: Dense: input [1, 2] must "
     "end in 3, or have that many values per sample"},
    {R"({"type":"Softmax","temperature":0})",
     "at byte 64: layers[0].temperature: expected a number from 1e-06 to 1000000, found 0"},
    {R"({"type":"Softmax","temperature":"1"})",
     "at byte 64: layers[0].temperature: expected a number from 1e-06 to 1000000, found \"1\""},
    {R"({"type":"Softmax","variant":7})",
     "at byte 60: layers[0].variant: expected a string, found 7"},
    {R"({"type":"Softmax","disabled":true})", "the grid has no enabled layer; put at least one"},
    {R"({"type":"RMSNorm","width":4})",
     "cell (0, 0, 0, 0) does not fit the input: RMSNorm: input [1, 3] must end in 4"},
};

TEST(BadNetworkJson, IsRefusedForItsLayers) {
  for (const BadNetwork& bad : kLayers)
    expect_refused(R"({"loom":1,"input":[3],"layers":[)" + bad.text + "]}", bad.message);
}

std::string cell(const std::string& at, const std::string& more = "") {
  return R"({"at":)" + at + "," + kDense + more + "}";
}

const std::vector<BadNetwork> kCells = {
    {cell("{}"), "at byte 54: cells[0].at: expected a list of 4 integers, found an object"},
    {cell("[0,0,0,-1]"),
     "at byte 61: cells[0].at[3]: expected an integer from 0 to 16777216, found -1"},
    {cell("[0,0,0,1.5]"),
     "at byte 61: cells[0].at[3]: expected an integer from 0 to 16777216, found 1.5"},
    {cell("[0,0,16777217,0]"),
     "at byte 59: cells[0].at[2]: expected an integer from 0 to 16777216, found 16777217"},
    {cell("[1,0,0,0]"),
     "at byte 54: cells[0].at: cell (1, 0, 0, 0) is outside the grid 1 x 1 x 2 x 1: z must be from "
     "0 to 0"},
    {cell("[0,0,0,0]", R"(,"dtype":8)"),
     "at byte 102: cells[0].dtype: expected the name of a number type, found 8"},
    {cell("[0,0,0,0]", R"(,"shared_with":7)"),
     "at byte 108: cells[0].shared_with: expected a list of 4 integers, found 7"},
    {cell("[0,0,0,0]", R"(,"shared_with":[0,0,0,0])"),
     "cell (0, 0, 0, 0) shares weights with (0, 0, 0, 0), which is not a layer before it"},
    {cell("[0,0,0,0]", R"(,"shared_with":[0,9,0,0])"),
     "cell (0, 0, 0, 0) shares weights with (0, 9, 0, 0), which is not a layer before it"},
    {cell("[0,0,0,0]", R"(,"link":[0,0,1,0])"),
     "at byte 101: cells[0].link: expected an object, found an array"},
    {cell("[0,0,0,0]", R"(,"link":{"from":[0,0,1]})"),
     "at byte 109: cells[0].link.from: expected a list of 4 integers, found 3"},
    {cell("[0,0,0,0]", R"(,"link":{"from":[0,0,1,0],"feedback":1})"),
     "at byte 130: cells[0].link.feedback: expected true or false, found 1"},
    {cell("[0,0,0,0]", R"(,"link":{"from":[0,0,0,0]})"),
     "cell (0, 0, 0, 0) cannot be linked to itself; make the link a feedback link to take what the "
     "previous pass gave"},
    {cell("[0,0,0,0]", R"(,"link":{"from":[0,0,1,0]})") + "," + cell("[0,0,1,0]"),
     "cell (0, 0, 0, 0) is linked to (0, 0, 1, 0), which comes after it, so each would wait for "
     "the other; make the link a feedback link to take what the previous pass gave"},
    {cell("[0,0,0,0]") + "," + cell("[0,0,1,0]", R"(,"link":{"from":[0,5,0,0]})"),
     "cell (0, 0, 1, 0) is linked to (0, 5, 0, 0), where there is no enabled layer"},
};

TEST(BadNetworkJson, IsRefusedForItsCells) {
  for (const BadNetwork& bad : kCells) {
    expect_refused(R"({"loom":1,"grid":[1,1,2,1],"input":[3],"cells":[)" + bad.text + "]}",
                   bad.message);
  }
}

}  // namespace
}  // namespace loom::core
