// Handcrafted bad ONNX files, each with the exact text of its refusal: framing, messages, tensors,
// attributes, and the classes of published advisories (paths to other files above all).
#include <gmock/gmock.h>

#include <filesystem>

#include "base/text.hpp"
#include "formats/onnx_testing.hpp"
#include "io/io_testing.hpp"
#include "onnx/file/external.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using test::onnx_wire_model;
using test::onnx_wire_node;
using test::onnx_wire_tensor;
using test::onnx_wire_value;
using test::onnx_wire_with_attribute;
using test::onnx_wire_with_tensor;
using test::TemporaryFolder;
using test::Wire;

struct Bad {
  std::string file, error;
  Code code = Code::bad_file;
};

void check(const std::vector<Bad>& rows) {
  for (const Bad& row : rows)
    expect_error(parse_onnx(bytes_of(row.file), "f"), row.code, "f: " + row.error);
}

std::string cut(std::string bytes, size_t from_end) {
  bytes.resize(bytes.size() - from_end);
  return bytes;
}

Wire opset(const char* domain, int64_t version) {
  Wire w;
  w.text(1, domain);
  w.integer(2, version);
  return w;
}

TEST(BadOnnx, TheModelTheTestsStartFromIsGood) {
  EXPECT_TRUE(parse_onnx(bytes_of(onnx_wire_model()), "f").ok());
  const auto with =
      parse_onnx(bytes_of(onnx_wire_model([](Wire& g) { g.message(5, onnx_wire_tensor()); })), "f");
  ASSERT_TRUE(with.ok()) << with.error().str();
  EXPECT_EQ(with->graph.initializers[0].data().size(), 8u);
}

TEST(BadOnnx, IsRefusedForItsFraming) {
  Wire no_opset;
  no_opset.integer(1, 9);
  no_opset.message(7, Wire());
  check({
      {"", "at byte 0: ModelProto: has no graph: this is not an ONNX model"},
      {"hello, world", "at byte 2: ModelProto: field 13 is a group, which is not read"},
      {"\x80", "at byte 1: ModelProto needs 1 bytes, 0 remain; copy or download it again"},
      {cut(onnx_wire_model(), 1),
       "at byte 78: ModelProto: field 8 needs 2 bytes, 1 remain; copy or download it again"},
      {no_opset.str(),
       "at byte 0: ModelProto: has no ir_version or no opset_import: this is not an ONNX model"},
      {onnx_wire_model() + "\x3B", "at byte 80: ModelProto: field 7 is a group, which is not read"},
      {onnx_wire_model({}, [](Wire& m) { m.message(7, Wire()); }),
       "at byte 80: ModelProto.graph: occurs twice"},
      {onnx_wire_model({}, [](Wire& m) { m.integer(1, 9); }),
       "at byte 80: ModelProto.ir_version: occurs twice"},
      {onnx_wire_model({}, [](Wire& m) { m.text(1, "9"); }),
       "at byte 80: ModelProto.ir_version: occurs twice"},
      {onnx_wire_model({}, [](Wire& m) { m.message(8, opset("", 17)); }),
       "at byte 80: ModelProto.opset_import: '' occurs twice"},
      {onnx_wire_model({}, [](Wire& m) { m.message(8, opset("ai.onnx", 17)); }),
       "at byte 80: ModelProto.opset_import: '' occurs twice"},
      {onnx_wire_model({}, [](Wire& m) { m.integer(8, 1); }),
       "at byte 80: ModelProto.OperatorSetIdProto: expected a string or message, found a varint"},
      {onnx_wire_model({}, [](Wire& m) { m.integer(14, 1); }),
       "at byte 80: ModelProto.StringStringEntryProto: expected a string or message, found a "
       "varint"},
      {onnx_wire_model({}, [](Wire& m) { m.text(2, "\xFF"); }),
       "at byte 80: ModelProto.producer: invalid UTF-8"},
      {onnx_wire_model({}, [](Wire& m) { m.message(25, Wire()); }),
       "the model defines functions of its own, which are not read; inline them",
       Code::unsupported},
  });
}

TEST(BadOnnx, IsRefusedForItsGraph) {
  const auto dims = [](const std::function<void(Wire&)>& dim) {
    return onnx_wire_model([&](Wire& g) {
      g.message(13, onnx_wire_value("v", [&](Wire& shape) {
                  Wire d;
                  dim(d);
                  shape.message(1, d);
                }));
    });
  };
  const auto typed = [](uint32_t field) {
    return onnx_wire_model([&](Wire& g) {
      Wire type, value;
      type.message(field, Wire());
      value.text(1, "v");
      value.message(2, type);
      g.message(13, value);
    });
  };
  check({
      {onnx_wire_model([](Wire& g) { g.text(2, "again"); }),
       "at byte 24: GraphProto.name: occurs twice"},
      {onnx_wire_model([](Wire& g) { g.message(1, Wire()); }),
       "at byte 26: NodeProto: has no op_type"},
      {onnx_wire_model([](Wire& g) { g.integer(1, 7); }),
       "at byte 24: GraphProto.NodeProto: expected a string or message, found a varint"},
      {onnx_wire_model(
           [](Wire& g) { g.message(1, onnx_wire_node([](Wire& n) { n.text(4, "Add"); })); }),
       "at byte 41: NodeProto.name, op_type or domain: occurs twice"},
      {onnx_wire_model(
           [](Wire& g) { g.message(1, onnx_wire_node([](Wire& n) { n.text(1, "\xC0\x80"); })); }),
       "at byte 41: NodeProto.inputs and outputs: invalid UTF-8"},
      {onnx_wire_model([](Wire& g) { g.message(15, Wire()); }),
       "the graph has sparse initializers, which are not read; save them dense", Code::unsupported},
      {dims([](Wire& d) { d.integer(1, -3); }), "at byte 39: Dimension.dim_value: -3 is below 0"},
      {dims([](Wire& d) {
         d.integer(1, 3);
         d.text(2, "n");
       }),
       "at byte 39: Dimension: has both dim_value and dim_param"},
      {typed(4),
       "value 'v' is not a plain tensor; sequences, maps, optionals and sparse tensors are not "
       "read",
       Code::unsupported},
      {typed(8),
       "value 'v' is not a plain tensor; sequences, maps, optionals and sparse tensors are not "
       "read",
       Code::unsupported},
      {onnx_wire_model([](Wire& g) {
         g.message(13, onnx_wire_value("v", [](Wire& shape) {
                     for (int i = 0; i < 9; ++i) shape.message(1, Wire());
                   }));
       }),
       "at byte 53: TensorShapeProto.dim: more than 8"},
  });
}

TEST(BadOnnx, IsRefusedForItsTensors) {
  const auto fields = [](std::vector<int64_t> shape, int64_t type,
                         const std::function<void(Wire&)>& values = {}) {
    return onnx_wire_with_tensor([&](Wire& t) {
      t.integers(1, shape);
      t.integer(2, type);
      if (values) values(t);
    });
  };
  const auto raw = [](size_t bytes) {
    return [bytes](Wire& t) { t.text(9, std::string(bytes, 'x')); };
  };
  const std::string at = "at byte 26: TensorProto: tensor 'w': ";
  constexpr int64_t kHuge = int64_t{1} << 32;
  check({
      {fields({2}, 1, raw(7)), at + "raw_data has 7 bytes, its shape needs 8"},
      {fields({2}, 1, raw(9)), at + "raw_data has 9 bytes, its shape needs 8"},
      {fields({2}, 1, raw(0)), at + "raw_data has 0 bytes, its shape needs 8"},
      {fields({}, 11, raw(4)), at + "raw_data has 4 bytes, its shape needs 8"},
      {fields({2}, 1), at + "has 0 values, its shape needs 2"},
      {fields({-1}, 1, raw(4)), at + "a dimension of -1"},
      {fields({kHuge, kHuge}, 1, raw(4)), at + "its shape has more than 2147483647 values"},
      {fields({kHuge, kHuge, 0}, 1, raw(0)), at + "its shape has more than 2147483647 values"},
      {fields({INT64_MAX}, 9, raw(1)), at + "its shape has more than 2147483647 values"},
      {fields({1, 1, 1, 1, 1, 1, 1, 1, 1}, 1, raw(4)),
       "at byte 29: TensorProto.dims: more than 8 values"},
      {fields({1}, 0, raw(4)), "tensor 'w': data type 0 is not read", Code::unsupported},
      {fields({1}, 8, raw(4)), "tensor 'w': data type 8 is not read", Code::unsupported},
      {fields({1}, 14, raw(8)), "tensor 'w': data type 14 is not read", Code::unsupported},
      {fields({1}, -1, raw(4)), "at byte 32: TensorProto.data_type: -1 is not a type"},
      {fields({1}, 1,
              [](Wire& t) {
                t.floats(4, {1});
                t.text(9, "1234");
              }),
       at + "values are in more than one field, or not in that of float"},
      {fields({1}, 1, [](Wire& t) { t.integers(7, {1}); }),
       at + "values are in more than one field, or not in that of float"},
      {fields({2}, 1,
              [](Wire& t) {
                t.floats(4, {1, 2, 3});
              }),
       at + "has 3 values, its shape needs 2"},
      {fields({1}, 3, [](Wire& t) { t.integers(5, {128}); }), at + "a value does not fit int8"},
      {fields({1}, 10, [](Wire& t) { t.integers(5, {65536}); }),
       at + "a value does not fit float16"},
      {fields({1}, 6, [](Wire& t) { t.integers(5, {int64_t{1} << 31}); }),
       at + "a value does not fit int32"},
      {fields({1}, 1, [](Wire& t) { t.text(4, "123"); }),
       "at byte 34: TensorProto.float_data: 3 bytes are not a multiple of 4-byte values"},
      {fields({1}, 1, [](Wire& t) { t.text(6, "s"); }),
       "at byte 34: TensorProto.string_data: tensors of strings are not read"},
      {fields({1}, 1, [](Wire& t) { t.message(3, Wire()); }),
       "at byte 34: TensorProto.segment: tensors in pieces are not read"},
      {fields({1}, 1, [](Wire& t) { t.text(8, "again"); }),
       "at byte 34: TensorProto.name: occurs twice"},
      {fields({1}, 1,
              [](Wire& t) {
                t.text(9, "1234");
                t.text(9, "1234");
              }),
       "at byte 40: TensorProto.raw_data: occurs twice"},
  });
}

TEST(BadOnnx, IsRefusedForItsAttributes) {
  const auto named = [](const std::function<void(Wire&)>& fields) {
    return onnx_wire_with_attribute([&](Wire& a) {
      a.text(1, "a");
      fields(a);
    });
  };
  const std::string subgraph =
      "node 'n' (Relu): its attribute 'a' holds a subgraph, a sparse tensor or a type; none is "
      "read";
  check({
      {named([](Wire& a) { a.integer(20, 0); }),
       "at byte 43: AttributeProto: attribute 'a' is of type 0, which is not read"},
      {named([](Wire& a) { a.integer(3, 1); }),
       "at byte 43: AttributeProto: attribute 'a' is of type 0, which is not read"},
      {named([](Wire& a) {
         a.f32(2, 1);
         a.integer(20, 2);
       }),
       "at byte 43: AttributeProto: attribute 'a' says it is of type 2, but holds another"},
      {named([](Wire& a) {
         a.f32(2, 1);
         a.integer(3, 1);
         a.integer(20, 2);
       }),
       "at byte 51: AttributeProto.value: an attribute of two types"},
      {named([](Wire& a) {
         a.integer(3, 1);
         a.integer(3, 1);
         a.integer(20, 2);
       }),
       "at byte 48: AttributeProto.value: occurs twice"},
      {named([](Wire& a) { a.integer(20, 4); }),
       "at byte 43: AttributeProto: attribute 'a' has no tensor"},
      {named([](Wire& a) {
         a.message(6, Wire());
         a.integer(20, 5);
       }),
       subgraph, Code::unsupported},
      {named([](Wire& a) {
         a.message(22, Wire());
         a.integer(20, 11);
       }),
       subgraph, Code::unsupported},
      {named([](Wire& a) { a.text(21, "outer"); }),
       "at byte 46: AttributeProto.ref_attr_name: attributes of functions are not read"},
      {named([](Wire& a) { a.text(1, "b"); }), "at byte 46: AttributeProto.name: occurs twice"},
      {onnx_wire_model([](Wire& g) {
         g.message(1, onnx_wire_node([](Wire& n) {
                     Wire a;
                     a.text(1, "a");
                     a.integer(20, 2);
                     n.message(5, a);
                     n.message(5, a);
                   }));
       }),
       "at byte 49: NodeProto.attribute: 'a' occurs twice"},
  });
}

std::string with_external(const std::vector<std::pair<std::string, std::string>>& entries) {
  return onnx_wire_with_tensor([&](Wire& t) {
    t.integers(1, {2});
    t.integer(2, 1);
    for (const auto& [key, value] : entries) {
      Wire pair;
      pair.text(1, key);
      pair.text(2, value);
      t.message(13, pair);
    }
    t.integer(14, 1);
  });
}

// Issue 37, line 29: the data of a tensor are in a file of the model's folder.
TEST(Onnx, ReadsTensorsWhoseDataAreBesideTheModel) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("deep"));
  const std::string values("----\0\0\x80\x3f\0\0\0\x40", 12);  // 1 and 2 from byte 4 on
  folder.write("w.data", values);
  folder.write("deep/w.data", values);
  for (const char* location : {"w.data", "deep/w.data", "./w.data"}) {
    const std::string file = with_external(
        {{"location", location}, {"offset", "4"}, {"length", "8"}, {"checksum", "x"}});
    const auto model = parse_onnx_file(bytes_of(file), folder.path("m.onnx"));
    ASSERT_TRUE(model.ok()) << model.error().str();
    EXPECT_EQ(*onnx_f32(model->graph.initializers.at(0)), (std::vector<float>{1, 2}));
  }
}

// The advisories of 2022 to 2026: every one of them began with a file that may name another.
TEST(BadOnnx, NeverLeavesTheFolderOfTheModel) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("m"));
  folder.write("outside.bin", "12345678");
  folder.write("m/short.bin", "1234");
  folder.write("m/hard.bin", "12345678");
  std::filesystem::create_hard_link(folder.path("m/hard.bin"), folder.path("other.bin"));
  std::filesystem::create_symlink(folder.path("outside.bin"), folder.path("m/link.bin"));
  std::filesystem::create_symlink(folder.path(""), folder.path("m/up"));
  const std::string inside = "which is not a file in the folder of the model", link = "is a link;";
  const struct {
    std::vector<std::pair<std::string, std::string>> entries;
    std::string message;
  } kRows[] = {
      {{{"location", "../outside.bin"}}, inside},       // CVE-2022-25882
      {{{"location", "a/../../outside.bin"}}, inside},  // CVE-2024-27318
      {{{"location", folder.path("outside.bin")}}, inside},
      {{{"location", "..\\outside.bin"}}, inside},
      {{{"location", "C:outside.bin"}}, inside},
      {{{"location", ""}}, inside},
      {{}, inside},
      {{{"location", "link.bin"}}, link},        // CVE-2026-27489, -34447
      {{{"location", "up/outside.bin"}}, link},  // the same of a folder
      {{{"location", "hard.bin"}}, link},        // CVE-2026-34446
      {{{"location", "short.bin"}}, "has 4 bytes; a tensor needs 8 from byte 0"},
      {{{"location", "short.bin"}, {"offset", "18446744073709551615"}}, "must be an integer"},
      {{{"location", "short.bin"}, {"offset", "-1"}}, "must be an integer"},  // CVE-2026-34445
      {{{"location", "short.bin"}, {"offset", "9223372036854775807"}}, "a tensor needs 8 from"},
      {{{"location", "short.bin"}, {"length", "4"}}, "its data have 4 bytes, its shape needs 8"},
      {{{"location", "none.bin"}}, "No such file"},
      {{{"location", "."}}, "folder"},
  };
  for (const auto& row : kRows) {
    const std::string file = with_external(row.entries);
    const auto model = parse_onnx_file(bytes_of(file), folder.path("m/m.onnx"));
    ASSERT_FALSE(model.ok()) << row.message;
    EXPECT_NE(model.error().str().find(row.message), std::string::npos) << model.error().str();
  }
}

// A download of a hub is a folder of links to files of its cache.
TEST(Onnx, ReadsTensorsWhoseDataAreInTheCacheOfAHub) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("models--a/snapshots/1/onnx"));
  std::filesystem::create_directories(folder.path("models--a/blobs"));
  std::filesystem::create_directories(folder.path("models--b/blobs"));
  const std::string values("\0\0\x80\x3f\0\0\0\x40", 8);
  for (const char* path : {"models--a/blobs/f00", "models--b/blobs/f00", "models--a/f00"})
    folder.write(path, values);
  std::filesystem::create_symlink("../f00", folder.path("models--a/blobs/out"));
  const std::string snapshot = folder.path("models--a/snapshots/1/onnx/");
  const auto error = [&](const char* name, const char* to) {
    std::filesystem::create_symlink(to, snapshot + name);
    const std::string file = with_external({{"location", name}});
    const auto model = parse_onnx_file(bytes_of(file), snapshot + "m.onnx");
    return model.ok() ? "" : model.error().str();
  };
  EXPECT_EQ(error("w.data", "../../../blobs/f00"), "");
  const auto link = ::testing::HasSubstr("is a link;");
  EXPECT_THAT(error("other.data", "../../../../models--b/blobs/f00"), link);
  EXPECT_THAT(error("beside.data", "../../../f00"), link);
  EXPECT_THAT(error("out.data", "../../../blobs/out"), link);
  EXPECT_THAT(error("none.data", "../../../blobs/none"), link);
}

// Bytes without a file have no folder.
TEST(BadOnnx, NeverOpensWhatItsTensorsName) {
  const TemporaryFolder folder;
  folder.write("weights.bin", "12345678");
  std::filesystem::create_symlink(folder.path("weights.bin"), folder.path("link.bin"));
  std::filesystem::create_hard_link(folder.path("weights.bin"), folder.path("hard.bin"));
  const std::vector<std::vector<std::pair<std::string, std::string>>> cases = {
      {{"location", "../weights.bin"}},            // CVE-2022-25882
      {{"location", "a/../../weights.bin"}},       // CVE-2024-27318
      {{"location", folder.path("link.bin")}},     // CVE-2026-27489, -34447: symbolic link
      {{"location", folder.path("hard.bin")}},     // CVE-2026-34446: hard link
      {{"location", folder.path("weights.bin")}},  // an absolute path
      {{"location", "weights.bin"}, {"__class__", "x"}, {"offset", "-1"}},  // CVE-2026-34445
      {{"location", "weights.bin"}, {"offset", "0"}, {"length", "8"}},
      {},
  };
  for (const auto& entries : cases) {
    const std::string file = onnx_wire_with_tensor([&](Wire& t) {
      t.integers(1, {2});
      t.integer(2, 1);
      for (const auto& [key, value] : entries) {
        Wire pair;
        pair.text(1, key);
        pair.text(2, value);
        t.message(13, pair);
      }
      if (entries.empty()) t.integer(14, 1);  // data_location alone
    });
    check({{file,
            "tensor 'w' keeps its data in another file; Loom opens no path from a model: "
            "save the model with its data inside",
            Code::unsupported}});
  }
  // In attributes too (the tensors that one runtime forgot).
  const std::string hidden = onnx_wire_with_attribute([](Wire& a) {
    a.text(1, "value");
    a.message(5, onnx_wire_tensor([](Wire& t) {
                t.integers(1, {2});
                t.integer(2, 1);
                t.message(13, Wire());
              }));
    a.integer(20, 4);
  });
  check({{hidden,
          "tensor 'w' keeps its data in another file; Loom opens no path from a model: "
          "save the model with its data inside",
          Code::unsupported}});
}

TEST(Onnx, ReadsEveryTypeOfTensor) {
  struct Row {
    int64_t type;
    std::function<void(Wire&)> values;
    double value;
  };
  const std::vector<Row> rows = {
      {1, [](Wire& t) { t.floats(4, {1.5f}); }, 1.5},
      {2, [](Wire& t) { t.integers(5, {200}); }, 200},
      {3, [](Wire& t) { t.integers(5, {-100}); }, -100},
      {4, [](Wire& t) { t.integers(5, {60000}); }, 60000},
      {5, [](Wire& t) { t.integers(5, {-30000}); }, -30000},
      {6, [](Wire& t) { t.integers(5, {-70000}); }, -70000},
      {7, [](Wire& t) { t.integers(7, {-5}); }, -5},
      {9, [](Wire& t) { t.integers(5, {1}); }, 1},
      {10, [](Wire& t) { t.integers(5, {0x3E00}); }, 1.5},
      {11, [](Wire& t) { t.text(9, std::string("\0\0\0\0\0\0\xF8\x3F", 8)); }, 1.5},
      {12, [](Wire& t) { t.integers(11, {4000000000}); }, 4e9},
      {13, [](Wire& t) { t.integers(11, {7}); }, 7},
      {16, [](Wire& t) { t.integers(5, {0x3FC0}); }, 1.5},
      {16, [](Wire& t) { t.text(9, "\xC0\x3F"); }, 1.5},
  };
  for (const Row& row : rows) {
    const std::string file = onnx_wire_with_tensor([&](Wire& t) {
      t.integers(1, {1});
      t.integer(2, row.type);
      row.values(t);
    });
    const auto model = parse_onnx(bytes_of(file), "f");
    ASSERT_TRUE(model.ok()) << row.type << ": " << model.error().str();
    const OnnxTensor& t = model->graph.initializers[0];
    const auto real = onnx_f32(t);
    const auto whole = onnx_i64(t);
    ASSERT_NE(real.ok(), whole.ok()) << row.type;
    EXPECT_EQ(real.ok() ? static_cast<double>((*real)[0]) : static_cast<double>((*whole)[0]),
              row.value);
  }
}

}  // namespace
}  // namespace loom::core
