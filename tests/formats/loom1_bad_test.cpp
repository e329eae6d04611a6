// Handcrafted bad files of the original, each with the exact line of its refusal. In the JSON
// files the first byte of the layer under test is 74.
#include "formats/loom1_entity_testing.hpp"

namespace loom::core {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

struct Bad {
  std::string file, message;
};

std::string net(const std::string& layers, int cols = 1) {
  return cat(R"({"id":"network","depth":1,"rows":1,"cols":)", cols,
             R"(,"layers_per_cell":1,"layers":[)", layers, "]}");
}
std::string one(const std::string& members) {
  return net("{" + members + "}");
}
std::string dense(const std::string& members) {
  return one(R"("type":"Dense","activation":"ReLU","input_height":2,"output_height":1)" + members);
}

const Bad kDocuments[] = {
    {"", "at byte 0: expected a value, found the end of the text"},
    {"[]", "at byte 0: expected a network, found an array"},
    {"{}", "at byte 0: \"depth\" is required, but absent"},
    {R"({"depth":1,"rows":1,"cols":1,"layers":[]})",
     "at byte 0: \"layers_per_cell\" is required, but absent"},
    {R"({"depth":0,"rows":1,"cols":1,"layers_per_cell":1,"layers":[]})",
     "at byte 9: depth: expected an integer above 0, found 0"},
    {R"({"depth":1.5,"rows":1,"cols":1,"layers_per_cell":1,"layers":[]})",
     "at byte 9: depth: expected an integer above 0, found 1.5"},
    {R"({"depth":100000,"rows":100000,"cols":1,"layers_per_cell":1,"layers":[]})",
     "at byte 23: rows: more than 262144 cells"},
    {R"({"depth":1,"rows":1,"cols":1,"layers_per_cell":1})",
     "at byte 0: \"layers\" is required, but absent"},
    {R"({"depth":1,"rows":1,"cols":1,"layers_per_cell":1,"layers":{}})",
     "at byte 58: layers: expected a list of layers, found an object"},
    {R"({"depth":1,"rows":1,"cols":1,"layers_per_cell":1,"layers":[],"loom":1})",
     "at byte 68: loom: unknown key; a network has id, depth, rows, cols, layers_per_cell, layers"},
    {R"({"depth":1,"depth":1})", "at byte 11: duplicate key \"depth\""},
    {net("1"), "at byte 74: layers[0]: expected a layer, found 1"},
    {net(""), "no layer says how large the input is; give the shape of one sample"},
    {net("{},{}"), "at byte 73: layers: 2 layers in a grid of 1 cells"},
    {net(R"({"type":"Residual","x":1})"), "at byte 74: layers[0]: x is 1, must be from 0 to 0"},
    {net(R"({"type":"Residual","z":-1})"), "at byte 74: layers[0]: z is -1, must be from 0 to 0"},
    {net(R"({"type":"Dense","activation":"ReLU","input_height":2,"output_height":2},)"
         R"({"type":"Residual"})",
         2),
     "at byte 146: layers[1]: is at (0, 0, 0, 0) like layers[0]"},
};

const Bad kFields[] = {
    {one(""), "at byte 74: layers[0]: \"type\" is required, but absent"},
    {one(R"("type":"Dens")"),
     "at byte 74: layers[0]: unknown type 'Dens'; known are dense, multiheadattention, mha, "
     "attention, swiglu, rmsnorm, layernorm, cnn1, cnn2, cnn3, convtransposed1d, convtransposed2d, "
     "convtransposed3d, rnn, lstm, embedding, kmeans, softmax, parallel, sequential, residual"},
    {one(R"("type":"Metacognition")"),
     "at byte 74: layers[0]: metacognition changes a layer while it runs, which Loom does not do; "
     "save the layer it observes without it"},
    {one(R"("type":7)"), "at byte 82: layers[0].type: expected text, found 7"},
    {dense(R"(,"colour":1)"),
     "at byte 154: layers[0].colour: unknown key; the original writes no such field"},
    {dense(R"(,"filters":"3")"),
     "at byte 155: layers[0].filters: expected an integer of at most 1099511627776, found "
     "\"3\""},
    {dense(R"(,"filters":2.5)"),
     "at byte 155: layers[0].filters: expected an integer of at most 1099511627776, found 2.5"},
    {dense(R"(,"filters":99999999999999)"),
     "at byte 155: layers[0].filters: expected an integer of at most 1099511627776, found "
     "99999999999999"},
    {dense(R"(,"temperature":true)"),
     "at byte 159: layers[0].temperature: expected a number, found true"},
    {dense(R"(,"is_disabled":1)"),
     "at byte 159: layers[0].is_disabled: expected true or false, found 1"},
    {dense(R"(,"dtype":"float12")"), "at byte 74: layers[0]: unknown dtype 'float12'"},
    {dense(R"(,"dtype":"nf4")"), "at byte 74: layers[0]: unknown dtype 'nf4'"},
    {dense(R"(,"meta_rules":[{}])"),
     "at byte 158: layers[0].meta_rules: metacognition changes a layer while it runs, which Loom "
     "does not do; save the layer it observes without it"},
    {dense(R"(,"meta_observed_layer":{"type":"Dense"})"),
     "at byte 167: layers[0].meta_observed_layer: metacognition changes a layer while it runs, "
     "which Loom does not do; save the layer it observes without it"},
    {dense(R"(,"parallel_branches":[{}])"),
     "at byte 165: layers[0].parallel_branches: a Dense has no such layers"},
    {dense(R"(,"mask":[1])"), "at byte 153: layers[0].mask: expected true or false, found 1"},
    {dense(R"(,"mask":[],"scale":1)"),
     "at byte 163: layers[0].scale: mask and scale are in files of two kinds, an architecture "
     "and a checkpoint; no file has both"},
    {dense(R"(,"scale":1,"target_x":0)"),
     "at byte 166: layers[0].target_x: scale and target_x are in files of two kinds, an "
     "architecture and a checkpoint; no file has both"},
    {one(R"("type":"Softmax","softmax_type":"Masked","mask":[true])"),
     "at byte 123: layers[0].mask: softmax_type as text and mask are in files of two kinds, an "
     "architecture and a checkpoint; no file has both"},
    {one(R"("type":"Softmax","softmax_type":10)"),
     "at byte 107: layers[0].softmax_type: expected the name of a softmax or a number from 0 to 9, "
     "found 10"},
    {one(R"("type":"Dense","activation":"swoosh","input_height":2,"output_height":1)"),
     "at byte 74: layers[0]: unknown activation 'swoosh'; known are relu, silu, gelu, tanh, "
     "sigmoid, leakyrelu, leaky_relu, relu2, linear"},
    {one(R"("type":"Dense","activation":"ReLU","output_height":1)"),
     "at byte 74: layers[0]: Dense: in is 0, must be from 1 to 16777216"},
    {one(R"("type":"MHA","activation":"ReLU","d_model":8)"),
     "at byte 74: layers[0]: num_heads is 0, must be at least 1"},
    {one(R"("type":"MHA","activation":"ReLU","d_model":8,"num_heads":3)"),
     "at byte 74: layers[0]: d_model 8 is not a multiple of num_heads 3, and head_dim is absent"},
    {one(R"("type":"MHA","d_model":8,"num_heads":2,"head_dim":3,"query_dim":8)"),
     "at byte 74: layers[0]: query_dim 8 is not num_heads 2 times head_dim 3"},
    {one(R"("type":"MHA","d_model":8,"num_heads":4,"num_kv_heads":3)"),
     "cell (0, 0, 0, 0) does not fit the input: MultiHeadAttention: kv_heads 3 must divide heads "
     "4"},
    {one(R"("type":"RMSNorm","input_height":2,"output_height":3)"),
     "at byte 74: layers[0]: input_height 2 and output_height 3 differ in a norm"},
    {one(R"("type":"CNN1","input_channels":1,"filters":1,"kernel_size":3,"stride":1,)"
         R"("input_height":5,"output_height":4)"),
     "at byte 74: layers[0]: an extent of 5 gives 3 with kernel_size 3, stride 1, padding 0, but "
     "the file says 4"},
    {one(R"("type":"CNN2","input_channels":1,"filters":1,"kernel_size":9999,"stride":1)"),
     "at byte 74: layers[0]: kernel_size 9999, stride 1, padding 0 must be at most 4096"},
    {one(R"("type":"CNN1","input_channels":1,"filters":1,"kernel_size":3,"stride":1)"),
     "no layer says how large the input is; give the shape of one sample"},
    {one(R"("type":"ConvTransposed1D","input_channels":1,"filters":1,"kernel_size":3,"stride":2,)"
         R"("input_width":4,"output_width":20)"),
     "at byte 74: layers[0]: an extent of 4 gives 9 with kernel_size 3, stride 2, padding 0, but "
     "the file says 20"},
    {one(R"("type":"Parallel","combine_mode":"filter","parallel_branches":[])"),
     "at byte 74: layers[0]: combine_mode filter needs its gate, which files of the original do "
     "not hold"},
    {one(R"("type":"Parallel","combine_mode":"gated","parallel_branches":[{"type":"Dense",)"
         R"("input_height":2,"output_height":2}])"),
     "cell (0, 0, 0, 0) does not fit the input: Parallel: unknown combine 'gated'; known are "
     "concat, add, avg, grid_scatter, filter, mixed"},
    {one(R"("type":"Parallel","parallel_branches":[{"type":"Dense","is_remote_link":true}])"),
     "at byte 114: layers[0].parallel_branches[0]: a link inside a container runs another cell's "
     "layer here, which Loom does not do; put the layer itself in its place"},
    {one(R"("type":"Sequential","sequential_layers":[{"type":"Lens"}])"),
     "at byte 116: layers[0].sequential_layers[0]: unknown type 'Lens'; known are dense, "
     "multiheadattention, mha, attention, swiglu, rmsnorm, layernorm, cnn1, cnn2, cnn3, "
     "convtransposed1d, convtransposed2d, convtransposed3d, rnn, lstm, embedding, kmeans, softmax, "
     "parallel, sequential, residual"},
    {one(R"("type":"Sequential","sequential_layers":{})"),
     "at byte 115: layers[0].sequential_layers: expected a list of layers, found an object"},
    {one(R"("type":"Softmax","softmax_type":"Hierarchical")"),
     "at byte 74: layers[0]: hierarchy_levels are not in the file; a checkpoint does not hold "
     "them, an architecture does"},
    {one(R"("type":"Softmax","softmax_type":"Standard")"),
     "no layer says how large the input is; give the shape of one sample"},
    {net(R"({"type":"Dense","input_height":2,"output_height":2,"is_remote_link":true,)"
         R"("target_x":5})"),
     "at byte 74: layers[0]: cell (0, 0, 5, 0) is outside the grid 1 x 1 x 1 x 1: x must be from 0 "
     "to 0"},
    {one(R"("type":"LSTM","input_height":1000000,"output_height":1,"seq_length":1000000)"),
     "one sample of the input has more than 2147483648 values"},
};

const Bad kWeights[] = {
    {dense(R"(,"weights":7)"), "at byte 155: layers[0].weights: expected Base64 text, found 7"},
    {dense(R"(,"weights":"AAAA")"),
     "at byte 74: layers[0]: weights: 4 characters of Base64 are too few for 2 values"},
    {dense(R"(,"weights":"AAAAAAAAAAA")"),
     "at byte 74: layers[0]: weights: 11 characters of Base64 are too few for 2 values"},
    {dense(R"(,"weights":"AAAAAAAAAA==")"),
     "at byte 74: layers[0]: weights: 2 values of float32 take 8 bytes, found 7"},
    {dense(R"(,"weights":"AAAA*AAAAAA=")"),
     "at byte 155: layers[0].weights: character 4 is not Base64"},
    {dense(R"(,"weights":"AAAAAAAAAAB=")"),
     "at byte 155: layers[0].weights: character 10 has bits of no byte"},
    {dense(R"(,"weights":"AAAAAAAAAAAAAAAA")"),
     "at byte 74: layers[0]: weights: 2 values of float32 take 8 bytes, found 12"},
    {dense(R"(,"dtype":"int8","weights":"AAA=","native":true)"),
     "at byte 74: layers[0]: native int8 weights need a scale"},
    {dense(R"(,"dtype":"int8","weights":"AAA=","native":true,"scale":-1)"),
     "at byte 74: layers[0]: native int8 weights need a scale"},
    {dense(R"(,"dtype":"int4","weights":"AAA=","native":true,"scale":0.5)"),
     "at byte 74: layers[0]: weights: 2 values of int4 take 1 bytes, found 2"},
    {dense(R"(,"dtype":"int8","native":true,"scale":0.5)"),
     "at byte 74: layers[0]: native weights, but none in the file"},
    {one(R"("type":"Residual","weights":"AAAA")"),
     "no layer says how large the input is; give the shape of one sample"},
    {one(R"("type":"Dense","input_height":16777216,"output_height":16777216,"weights":"AAAA")"),
     "at byte 74: layers[0]: has more than 1099511627776 weights"},
};

void check(const Bad& bad) {
  const Result<Loom1Network> read = parse_loom1_json(bad.file, "net");
  ASSERT_FALSE(read.ok()) << bad.file;
  EXPECT_EQ(read.error().str(), "net: " + bad.message) << bad.file;
}

TEST(BadLoom1Json, DocumentsAreRefused) {
  for (const Bad& bad : kDocuments) check(bad);
}
TEST(BadLoom1Json, FieldsAreRefused) {
  for (const Bad& bad : kFields) check(bad);
}
TEST(BadLoom1Json, WeightsAreRefused) {
  for (const Bad& bad : kWeights) check(bad);
}

TEST(BadLoom1Json, NestingHasALimit) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += R"({"type":"Sequential","sequential_layers":[)";
  const Result<Loom1Network> read = parse_loom1_json(net(text), "net");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("nested deeper than 64 levels"), std::string::npos);
}

}  // namespace
}  // namespace loom::core
