// Networks with weights as JSON: nothing is lost, and any damage gives one line.
#include "bridge/network_checkpoint.hpp"

#include <gmock/gmock.h>

#include "base/threads/thread_pool.hpp"
#include "grid/init.hpp"
#include "lab/training_hash.hpp"

namespace loom::core {
namespace {

// Initial values of a network as a source.
std::unique_ptr<MemorySource> fresh(const KindNetwork& kind) {
  auto source = std::make_unique<MemorySource>(kind.network);
  const Result<Network> network = Network::finalize(kind.network.grid, kind.network.input.after(1));
  for (size_t i = 0; i < network->params().size(); ++i) {
    const Param& param = network->params()[i];
    std::vector<float> values(static_cast<size_t>(param.spec.shape.count()));
    init_values(*network, static_cast<int>(i), 5, 0, param.spec.shape.count(), values.data());
    source->values[param.path] = std::move(values);
  }
  return source;
}

std::string written(const NetworkSource& source, DType dtype) {
  ThreadPool pool(1);
  PackPolicy policy;
  policy.dtype = [dtype](const Param&, DType) { return dtype; };
  const Result<std::string> text = write_network_checkpoint(source, policy, pool);
  EXPECT_TRUE(text.ok()) << text.error().str();
  return text.ok() ? *text : "";
}

TEST(NetworkCheckpoint, OfEveryKindIsReadAndWrittenWithTheSameBytes) {
  ThreadPool pool(1);
  for (const KindNetwork& kind : kind_networks()) {
    for (const DType dtype :
         {DType::f32, DType::f64, DType::i8, DType::u4, DType::binary, DType::q4_0, DType::nvfp4}) {
      SCOPED_TRACE(std::string(kind.kind) + " " + std::string(dtype_name(dtype)));
      const std::string text = written(*fresh(kind), dtype);
      const auto source = parse_network_checkpoint(text, "net.json");
      ASSERT_TRUE(source.ok()) << source.error().str();
      const Result<std::string> again = write_network_checkpoint(**source, {}, pool);
      ASSERT_TRUE(again.ok()) << again.error().str();
      EXPECT_EQ(*again, text);
    }
  }
}

TEST(NetworkCheckpoint, DamageIsOneLineWithItsPlace) {
  const std::string good = written(*fresh(kind_networks()[0]), DType::u8);
  struct Case {
    const char* from;
    const char* to;
    const char* says;
  };
  const Case cases[] = {
      {"\"params\": [", "\"parms\": [", "has no weights"},
      {"\"layout\":\"r16\"", "\"layout\":\"r17\"", "params[0]: layout must be plain or r16"},
      {"\"layout\":\"r16\"", "\"lay\":\"r16\"", "params[0]: unknown key 'lay'"},
      {"\"layout\":\"r16\",", "", "params[0]: layout must be a text"},
      {"\"dtype\":\"uint8\"", "\"dtype\":\"uint9\"", "params[0]: unknown dtype 'uint9'"},
      {"\"dtype\":\"uint8\"", "\"dtype\":8", "params[0]: dtype must be a text"},
      {"\"dtype\":\"uint8\"", "\"dtype\":\"int4\"", "bytes, its shape needs"},
      {"\"dtype\":\"float32\"", "\"dtype\":\"float16\"", "params[1]: a plain parameter is float32"},
      {"\"shape\":[17,9]", "\"shape\":[17]", "params[0]: a matrix in r16 has two extents"},
      {"\"shape\":[17,9]", "\"shape\":[17,-9]", "params[0]: an extent must be from 0 to 2^24"},
      {"\"shape\":[17,9]", "\"shape\":[16777216,16777216]", "params[0]: the shape is too large"},
      {"\"shape\":[17,9]", "\"shape\":[17,10]",
       "params[0]: (0, 0, 0, 0)/weight is [17, 10], the "
       "network wants [17, 9] in r16"},
      {"\"shape\":[17,9]", "\"shape\":17", "params[0]: shape must be a list"},
      {"(0, 0, 0, 0)/weight", "(0, 0, 0, 0)/wait", "the network has no parameter"},
      {"(0, 0, 0, 0)/bias", "(0, 0, 0, 0)/weight",
       "params[1]: (0, 0, 0, 0)/weight is [17], the "
       "network wants [17, 9] in r16"},
      {"\"hash\":\"", "\"hash\":\"0", "params[0]: the data does not match its hash"},
      {"\"data\":\"", "\"data\":\"*", "params[0]: data: "},
  };
  for (const Case& c : cases) {
    std::string text = good;
    const size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    text.replace(at, std::string(c.from).size(), c.to);
    const auto source = parse_network_checkpoint(text, "net.json");
    ASSERT_FALSE(source.ok()) << c.says;
    EXPECT_THAT(source.error().str(), testing::HasSubstr(c.says));
    EXPECT_THAT(source.error().str(), testing::StartsWith("net.json: "));
  }
}

TEST(NetworkCheckpoint, WhatTheWeightsWereTrainedForGoesAlong) {
  ThreadPool pool(1);
  const std::unique_ptr<MemorySource> source = fresh(kind_networks()[0]);
  const auto values = static_cast<size_t>(source->spec.input.count());
  Normalization normalization{std::vector<float>(values, 0.1f), std::vector<float>(values, 3e-7f)};
  normalization.shift[0] = -1e30f;
  keep_normalization(normalization, *source);
  JsonValue model = JsonValue::object();
  model.add("classes", JsonValue::array({JsonValue::string("up")}));
  source->sections.add("model", std::move(model));
  const std::string text = written(*source, DType::f32);
  const auto read = parse_network_checkpoint(text, "net.json");
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_EQ(*normalization_of(**read), normalization);
  EXPECT_EQ(*write_network_checkpoint(**read, {}, pool), text);
  struct Case {
    const char *from, *to, *says;
  };
  const Case cases[] = {
      {"\"shift\":[", "\"shift\":[1,", "normalization.shift: must be a list of "},
      {"\"shift\":[", "\"shaft\":[", "normalization.shift: must be a list of "},
      {"\"scale\":[", "\"scale\":{},\"x\":[", "normalization.scale: must be a list of "},
      {"\"model\": {\"classes\":[\"up\"]}", "\"model\": 5", "model: expected an object"},
  };
  for (const Case& c : cases) {
    std::string damaged = text;
    const size_t at = damaged.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    damaged.replace(at, std::string(c.from).size(), c.to);
    const auto bad = parse_network_checkpoint(damaged, "net.json");
    ASSERT_FALSE(bad.ok()) << c.says;
    EXPECT_THAT(bad.error().str(), testing::HasSubstr(c.says));
  }
}

TEST(NetworkCheckpoint, EveryFlippedBitIsRefusedOrChangesNothing) {
  ThreadPool pool(1);
  const std::string good = written(*fresh(kind_networks()[0]), DType::i4);
  const size_t params = good.find("\"params\"");
  for (size_t at = params; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = good;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      const auto source = parse_network_checkpoint(text, "net.json");
      if (!source.ok()) continue;
      EXPECT_EQ(*write_network_checkpoint(**source, {}, pool), good) << at << " " << bit;
    }
  }
}

}  // namespace
}  // namespace loom::core
