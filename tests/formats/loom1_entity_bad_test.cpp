// Handcrafted bad entity files of version 1, each with the exact line of its refusal; and one
// golden file of each form of the original, cut at every byte and with every bit flipped.
#include "formats/loom1_entity_testing.hpp"

namespace loom::core {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

struct Bad {
  std::string file, message;
};

std::string start(const std::string& magic, uint64_t version, uint64_t flags, uint64_t length) {
  return magic + le(version, 2) + le(flags, 2) + le(length, 8);
}
const std::string kMagic("ENTITY\0\0", 8);

const std::string kNet =
    R"({"depth":1,"rows":1,"cols":1,"layers_per_cell":1,"layers":[{"type":"Dense",)"
    R"("activation":"ReLU","input_height":2,"output_height":1}]})";
// A header with this list of blobs, and 8 bytes of payload.
std::string blobs(const std::string& list, size_t payload = 8) {
  return entity_with_header(cat(R"({"network":)", kNet, R"(,"blobs":)", list, "}"),
                            std::string(payload, '\0'));
}
std::string one(const std::string& members, size_t payload = 8) {
  return blobs(cat("[{", members, "}]"), payload);
}

const Bad kFraming[] = {
    {"", "at byte 0: the magic needs 8 bytes, 0 remain"},
    {"ENTITY", "at byte 0: the magic needs 8 bytes, 6 remain"},
    {std::string("ENTITX\0\0", 8),
     "at byte 0: not an entity file: it must begin with ENTITY and two zero bytes"},
    {kMagic, "at byte 8: the version needs 2 bytes, 0 remain"},
    {kMagic + le(2, 2), "at byte 8: version 2, expected 1"},
    {kMagic + le(1, 2), "at byte 10: the flags field needs 2 bytes, 0 remain"},
    {kMagic + le(1, 2) + le(4, 2), "at byte 10: flags 4, version 1 has none"},
    {kMagic + le(1, 2) + le(0, 2) + "1234567",
     "at byte 12: the header length needs 8 bytes, 7 remain"},
    {start(kMagic, 1, 0, 1), "at byte 20: the header needs 1 bytes, 0 remain"},
    {start(kMagic, 1, 0, UINT64_MAX),
     "at byte 12: a header of 18446744073709551615 bytes; the limit is 268435456"},
    {start(kMagic, 1, 0, uint64_t{1} << 40),
     "at byte 12: a header of 1099511627776 bytes; the limit is 268435456"},
    {start(kMagic, 1, 0, 0), "at byte 20: expected a value, found the end of the text"},
    {entity_with_header("{", ""), "at byte 21: expected a key or '}', found the end of the text"},
    {entity_with_header("[]", ""), "at byte 20: expected an object, found an array"},
    {entity_with_header("{}", ""), "at byte 20: \"network\" is required, but absent"},
    {entity_with_header(R"({"format_version":2})", ""),
     "at byte 38: format_version: expected 1, found 2"},
    {entity_with_header(R"({"format_version":"1"})", ""),
     "at byte 38: format_version: expected 1, found \"1\""},
    {entity_with_header(R"({"netwerk":{}})", ""),
     "at byte 31: netwerk: unknown key; a header has format_version, network, transformer, blobs"},
    {entity_with_header(R"({"network":{},"network":{}})", ""),
     "at byte 34: duplicate key \"network\""},
    {entity_with_header(R"({"network":[]})", ""), "at byte 31: expected a network, found an array"},
    {entity_with_header(R"({"network":{}})", ""), "at byte 31: \"depth\" is required, but absent"},
    {entity_with_header("{}", "x"), "1 bytes after the last blob"},
};

const Bad kBlobs[] = {
    {blobs("{}"), "at byte 172: blobs: expected a list, found an object"},
    {blobs("[1]"), "at byte 173: blobs[0]: expected a blob, found 1"},
    {blobs("[]"), "8 bytes after the last blob"},
    {blobs("[]", 0), "at byte 90: layers[0]: no blob holds weight [1, 2]"},
    {one(R"("offset":0,"length":8)"), "at byte 173: blobs[0]: path, offset or length is absent"},
    {one(R"("path":"layers.0","length":8)"),
     "at byte 173: blobs[0]: path, offset or length is absent"},
    {one(R"("path":"layers.0","offset":0)"),
     "at byte 173: blobs[0]: path, offset or length is absent"},
    {one(R"("path":0,"offset":0,"length":8)"),
     "at byte 181: blobs[0].path: expected text, found 0"},
    {one(R"("path":"layers.0","offset":-1,"length":8)"),
     "at byte 201: blobs[0].offset: expected a count of bytes, found -1"},
    {one(R"("path":"layers.0","offset":0.5,"length":8)"),
     "at byte 201: blobs[0].offset: expected a count of bytes, found 0.5"},
    {one(R"("path":"layers.0","offset":0,"length":"8")"),
     "at byte 212: blobs[0].length: expected a count of bytes, found \"8\""},
    {one(R"("path":"layers.0","offset":0,"length":8,"shape":[2])"),
     "at byte 222: blobs[0].shape: unknown key; a blob has path, offset, length, dtype, scale, "
     "native"},
    {one(R"("path":"layers.0","offset":0,"length":8,"native":1)"),
     "at byte 223: blobs[0].native: expected true or false, found 1"},
    {one(R"("path":"layers.0","offset":0,"length":8,"scale":"1")"),
     "at byte 222: blobs[0].scale: expected a number, found \"1\""},
    {one(R"("path":"layers.0","offset":0,"length":8,"dtype":4)"),
     "at byte 222: blobs[0].dtype: expected text, found 4"},
    {one(R"("path":"layers.0","offset":9,"length":8)"),
     "at byte 173: blob \"layers.0\": bytes [9, +8) of a payload of 8"},
    {one(R"("path":"layers.0","offset":0,"length":9)"),
     "at byte 173: blob \"layers.0\": bytes [0, +9) of a payload of 8"},
    {one(R"("path":"layers.0","offset":9223372036854775807,"length":9223372036854775807)"),
     "at byte 173: blob \"layers.0\": bytes [9223372036854775807, +9223372036854775807) of a "
     "payload of 8"},
    {one(R"("path":"layers.0","offset":18446744073709551615,"length":8)"),
     "at byte 201: blobs[0].offset: expected a count of bytes, found 18446744073709551615"},
    {one(R"("path":"layers.0","offset":1,"length":7)"),
     "at byte 173: blob \"layers.0\": a hole of 1 bytes before it"},
    {one(R"("path":"layers.0","offset":0,"length":7)"), "1 bytes after the last blob"},
    {blobs(R"([{"path":"a","offset":0,"length":5},{"path":"b","offset":4,"length":4}])"),
     "at byte 208: blob \"b\": overlaps the one before it by 1 bytes"},
    {blobs(R"([{"path":"a","offset":0,"length":8},{"path":"b","offset":0,"length":8}])"),
     "at byte 208: blob \"b\": overlaps the one before it by 8 bytes"},
    {blobs(R"([{"path":"a","offset":0,"length":4},{"path":"a","offset":4,"length":4}])"),
     "at byte 208: blob \"a\" occurs twice"},
    {blobs(R"([{"path":"layers.0","offset":0,"length":8},{"path":"x","offset":8,"length":0}])"),
     "at byte 215: blob \"x\": belongs to no layer"},
    {one(R"("path":"layers.0","offset":0,"length":4)", 4),
     "at byte 173: blob \"layers.0\": 2 values of float32 take 8 bytes, found 4"},
    {one(R"("path":"layers.0","offset":0,"length":8,"native":true,"dtype":"int9")"),
     "at byte 173: blob \"layers.0\": unknown dtype 'int9'"},
    {one(R"("path":"layers.0","offset":0,"length":8,"native":true,"dtype":"int32")"),
     "at byte 173: blob \"layers.0\": native int32 weights need a scale"},
    {one(R"("path":"layers.0","offset":0,"length":8,"native":true,"dtype":"int8","scale":1)"),
     "at byte 173: blob \"layers.0\": 2 values of int8 take 2 bytes, found 8"},
    {one(R"("path":"layers.1","offset":0,"length":8)"),
     "at byte 90: layers[0]: no blob holds weight [1, 2]"},
    {one(R"("path":"layers.0.q4_0.200","offset":0,"length":8)"),
     "at byte 90: layers[0]: no blob holds weight [1, 2]"},
};

// A network of one layer and its blobs.
std::string with(const std::string& record, const std::vector<Blob>& list,
                 const std::string& transformer = {}) {
  return entity(network_json({record}), list, transformer);
}
const std::string kDense =
    R"({"type":"Dense","activation":"ReLU","input_height":2,"output_height":1})";
const std::string kSwiGlu = R"({"type":"SwiGLU","input_height":1,"output_height":1})";
const std::string kNorm = R"({"type":"RMSNorm","output_height":2})";
const std::string kMha = R"({"type":"MHA","d_model":4,"num_heads":2})";

std::string bitnet_of(uint64_t rows, uint64_t cols, uint64_t offset, uint64_t row_words,
                      uint64_t words, const std::string& rest) {
  return with(kDense, {{"layers.0.bitnet_ternary.10000", le(rows, 4) + le(cols, 4) + le(offset, 4) +
                                                             f32_bytes({1}) + le(row_words, 4) +
                                                             le(words, 4) + rest}});
}
std::string q4_of(const std::string& body) {
  return with(kSwiGlu, {{"layers.0.q4_0.100", body},
                        {"layers.0.q4_0.101", std::string(28, '\0')},
                        {"layers.0.q4_0.102", std::string(28, '\0')}});
}
std::string norms_of(const std::vector<float>& q, const std::vector<float>& k) {
  return with(kMha, {{"layers.0", std::string(4 * 80, '\0')},
                     {"layers.0.q_norm", f32_bytes(q)},
                     {"layers.0.k_norm", f32_bytes(k)}});
}
std::string transformer(const std::string& members) {
  return with(kNorm, {}, "{" + members + "}");
}

const Bad kBodies[] = {
    {bitnet_of(1, 3, 0, 1, 1, le(0, 4)),
     "at byte 207: blob \"layers.0.bitnet_ternary.10000\": a matrix [1, 3] at 0, expected [1, 2] "
     "at 0"},
    {bitnet_of(1, 2, 1, 1, 1, le(0, 4)),
     "at byte 207: blob \"layers.0.bitnet_ternary.10000\": a matrix [1, 2] at 1, expected [1, 2] "
     "at 0"},
    {bitnet_of(1, 2, 0, 2, 2, le(0, 8)),
     "at byte 207: blob \"layers.0.bitnet_ternary.10000\": 2 words in a row and 2 in all do not "
     "hold [1, 2]"},
    {bitnet_of(1, 2, 0, 1, 0, ""),
     "at byte 207: blob \"layers.0.bitnet_ternary.10000\": 1 words in a row and 0 in all do not "
     "hold [1, 2]"},
    {bitnet_of(1, 2, 0, 1, 1, ""),
     "blob \"layers.0.bitnet_ternary.10000\": at byte 24: the word array needs 4 bytes, 0 remain"},
    {bitnet_of(1, 2, 0, 1, UINT32_MAX, le(0, 4)),
     "blob \"layers.0.bitnet_ternary.10000\": at byte 24: the word array needs 17179869180 bytes, "
     "4 remain"},
    {bitnet_of(1, 2, 0, 1, 1, le(0, 5)),
     "at byte 207: blob \"layers.0.bitnet_ternary.10000\": 1 bytes after the words"},
    {bitnet_of(1, 2, 0, 1, 1, le(3, 4)),
     "at byte 207: blob \"layers.0.bitnet_ternary.10000\": code 3 at row 0, column 0"},
    {with(kDense, {{"layers.0.bitnet_ternary.10000", "abc"}}),
     "blob \"layers.0.bitnet_ternary.10000\": at byte 0: the row count needs 4 bytes, 3 remain"},
    {q4_of(le(1, 4)),
     "blob \"layers.0.q4_0.100\": at byte 4: the count of words needs 4 bytes, 0 remain"},
    {q4_of(le(2, 4) + le(4, 4) + le(0, 24)),
     "at byte 188: blob \"layers.0.q4_0.100\": 1 values are 1 blocks, found 2 scales and 4 words"},
    {q4_of(le(1, 4) + le(3, 4) + le(0, 16)),
     "at byte 188: blob \"layers.0.q4_0.100\": 1 values are 1 blocks, found 1 scales and 3 words"},
    {q4_of(le(1, 4) + le(4, 4) + le(0, 19)),
     "blob \"layers.0.q4_0.100\": at byte 12: the word array needs 16 bytes, 15 remain"},
    {q4_of(le(1, 4) + le(4, 4) + le(0, 21)),
     "at byte 188: blob \"layers.0.q4_0.100\": 1 bytes after the words"},
    {with(kNorm, {}), "at byte 124: layers[0]: no blob holds its weights"},
    {with(kNorm, {{"layers.0.biases", le(0, 8)}}),
     "at byte 124: layers[0]: no blob holds its weights"},
    {with(kDense, {{"layers.0", le(0, 8)}, {"layers.0.inner_norm", le(0, 8)}}),
     "at byte 124: layers[0]: inner_norm, a norm inside a layer that has none in Loom"},
    {with(R"({"type":"Dense","input_height":1,"output_height":1,"weights":"AAAAAA=="})", {}),
     "at byte 124: layers[0]: weights are in the header; an entity holds them in blobs"},
    {norms_of({1, 2}, {}),
     "at byte 337: blob \"layers.0.k_norm\": 2 values of float32 take 8 bytes, found 0"},
    {norms_of({1, 2, 3}, {1, 2}),
     "at byte 253: blob \"layers.0.q_norm\": 2 values of float32 take 8 bytes, found 12"},
    {norms_of({1, 2, 1, 3}, {1, 2}),
     "at byte 124: layers[0]: the norms of q or k differ from head to head"},
    {with(kNorm, {}, "7"), "at byte 177: transformer: expected an object, found 7"},
    {transformer(""),
     "at byte 177: transformer: hidden_size, vocab_size and dims.num_layers must be integers "
     "from 1 to 16777216"},
    {transformer(
         R"("architecture":"unknown","hidden_size":2,"vocab_size":2,"dims":{"num_layers":1})"),
     "at byte 177: transformer: architecture 'unknown' with activation '' is not known; "
     "llama_style_decoder with silu or relu2 is"},
    {transformer(R"("architecture":"llama_style_decoder","hidden_size":2,"vocab_size":2,)"
                 R"("dims":{"num_layers":4611686018427387904})"),
     "at byte 177: transformer: hidden_size, vocab_size and dims.num_layers must be integers "
     "from 1 to 16777216"},
    {transformer(R"("architecture":"llama_style_decoder","hidden_size":2,"vocab_size":2,)"
                 R"("dims":{"num_layers":1})"),
     "1 layers do not make 1 blocks of four"},
};

void check(const Bad& bad) {
  const Result<Loom1Network> read = parse_loom1_entity(std::as_bytes(std::span(bad.file)), "net");
  ASSERT_FALSE(read.ok()) << bad.file;
  EXPECT_EQ(read.error().str(), "net: " + bad.message) << bad.file;
}

TEST(BadLoom1Entity, FramingIsRefused) {
  for (const Bad& bad : kFraming) check(bad);
}
TEST(BadLoom1Entity, BlobsAreRefused) {
  for (const Bad& bad : kBlobs) check(bad);
}
TEST(BadLoom1Entity, BodiesAreRefused) {
  for (const Bad& bad : kBodies) check(bad);
}

// ---- damage
// --------------------------------------------------------------------------------------

std::string golden_entity() {
  std::vector<float> kept;
  const std::string lstm =
      R"({"x":1,"type":"LSTM","dtype":"int8","input_height":2,"output_height":1,"seq_length":2})";
  const std::string mlp = R"({"x":2,"type":"SwiGLU","input_height":1,"output_height":2})";
  const std::string inner = cat(R"({"x":3,"type":"Parallel","combine_mode":"add",)"
                                R"("parallel_branches":[{"type":"RMSNorm","output_height":1},)"
                                R"({"type":"Residual"}]})");
  return entity(
      network_json({R"({"type":"Dense","dtype":"ternary","input_height":2,"output_height":2})",
                    lstm, mlp, inner}),
      {{"layers.0.bitnet_ternary.10000", bitnet({1, 0, -1, 1}, 2, 2, 0, 0.5f)},
       {"layers.1", layout1(std::vector<uint64_t>(16, 5), 8), "int8", 0.5f, true},
       {"layers.2.q4_0.100", q4_0({1, 2}, kept).substr(0, 28).replace(4, 4, le(4, 4))},
       {"layers.2.q4_0.101", q4_0({1, 2}, kept).substr(0, 28).replace(4, 4, le(4, 4))},
       {"layers.2.q4_0.102", q4_0({1, 2}, kept).substr(0, 28).replace(4, 4, le(4, 4))},
       {"layers.2.biases", f32_bytes({1, 2, 3, 4, 5})},
       {"layers.3.parallel_branches.0", f32_bytes({1})}});
}

std::string golden_json() {
  const std::string mha = record_json({"MHA", R"(,"num_heads":1,"d_model":2,"seq_length":2)",
                                       noise(24, 1), "ReLU", "float32", R"(,"use_tiling":true)"});
  const std::string nested =
      cat(R"({"z":0,"y":0,"x":1,"l":0,"type":"Sequential","activation":"ReLU","dtype":"float32",)"
          R"("sequential_layers":[{"type":"Dense","activation":"Tanh","dtype":"int4",)"
          R"("input_height":2,"output_height":2,"weights":")",
          base64(layout1({1, 2, 3, 15}, 4)), R"(","native":true,"scale":0.5}]})");
  return network_json({mha, nested});
}

// Every accepted file can be finalized, and its values belong to it.
void expect_whole(const Result<Loom1Network>& read) {
  if (!read.ok()) {
    EXPECT_EQ(read.error().str().find('\n'), std::string::npos) << read.error().str();
    return;
  }
  const Shape input = read->spec.input.after(1);
  const Result<Network> network = Network::finalize(read->spec.grid, input);
  ASSERT_TRUE(network.ok()) << network.error().str();
  for (const Param& p : network->params()) {
    const Loom1Param* values = read->find(p.path);
    ASSERT_NE(values, nullptr) << p.path;
    EXPECT_EQ(static_cast<int64_t>(values->values.size()), p.spec.shape.count()) << p.path;
  }
}

Result<Loom1Network> read_form(bool binary, const std::string& file) {
  return binary ? parse_loom1_entity(std::as_bytes(std::span(file)), "net")
                : parse_loom1_json(file, "net");
}

TEST(Loom1Anomaly, EveryTruncationIsRefused) {
  for (const bool binary : {false, true}) {
    const std::string whole = binary ? golden_entity() : golden_json();
    expect_whole(read_form(binary, whole));
    ASSERT_TRUE(read_form(binary, whole).ok()) << read_form(binary, whole).error().str();
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string cut(whole.data(), size);
      EXPECT_FALSE(read_form(binary, cut).ok()) << size;
    }
  }
}

TEST(Loom1Anomaly, EveryFlippedBitIsRefusedOrLeavesAWholeNetwork) {
  for (const bool binary : {false, true}) {
    const std::string whole = binary ? golden_entity() : golden_json();
    for (size_t i = 0; i < whole.size() * 8; ++i) {
      std::string flipped = whole;
      flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
      const Result<Loom1Network> read = read_form(binary, flipped);
      // The flip may be in a key that names weights: then there are none.
      if (read.ok() && read->params.empty()) continue;
      expect_whole(read);
    }
  }
}

}  // namespace
}  // namespace loom::core
