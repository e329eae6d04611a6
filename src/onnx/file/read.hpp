// The reader of ONNX files, as read.cpp and read_tensor.cpp share it. It is strict where the format
// is lenient. A singular field occurs once. An attribute states its type and holds that type alone.
// A tensor holds exactly the values of its shape, in one field. Unknown fields are skipped.
// Room-private; the door is parse_onnx() of model.hpp.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"
#include "io/bytes/protobuf.hpp"
#include "onnx/file/external.hpp"
#include "onnx/file/model.hpp"

namespace loom::core {

constexpr size_t kMaxOnnxValues = static_cast<size_t>(kMaxOnnxFile);

// Values of one tensor as they come in, before it is known which kind they should be.
struct TensorFields {
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints32, ints64, uints64;
  std::span<const std::byte> raw;
  bool external = false;
  OnnxExternal outside;
};

// Refuses the second occurrence of a singular field: in protobuf the last one wins, in other
// readers the first.
class ReadOnce {
 public:
  Status check(const ProtoReader& in, const ProtoField& f, std::string_view what) {
    const uint64_t bit = uint64_t{1} << (f.number & 63);
    if ((seen_ & bit) != 0) return in.error(f, what, "occurs twice");
    seen_ |= bit;
    return {};
  }
  bool has(uint32_t number) const { return (seen_ >> number & 1) != 0; }

 private:
  uint64_t seen_ = 0;
};

// Reads one file. A part is read where the field that holds it was entered.
class OnnxReader {
 public:
  // folder: that may hold data of tensors; "" if there is none.
  OnnxReader(std::span<const std::byte> file, const std::string& where, OnnxReading reading,
             std::string folder = {})
      : file_(file), where_(where), folder_(std::move(folder)), reading_(reading) {}
  Result<OnnxModel> model();

 private:
  Status graph(ProtoReader in, OnnxGraph& out);
  Status graph_field(const ProtoReader& in, const ProtoField& f, OnnxGraph& out);
  Result<OnnxNode> node(ProtoReader in);
  Result<OnnxAttribute> attribute(ProtoReader in, const OnnxNode& node);
  Status attribute_field(const ProtoReader& in, const ProtoField& f, const OnnxNode& node,
                         OnnxAttribute& out, uint32_t& held);
  Status list_field(const ProtoReader& in, const ProtoField& f, OnnxAttribute& out);
  Status value_of(const ProtoReader& in, const std::vector<ProtoField>& values,
                  const OnnxNode& node, int64_t type, OnnxAttribute& out);
  Result<OnnxFunction> function(ProtoReader in);
  Status function_field(const ProtoReader& in, const ProtoField& f, OnnxFunction& out);
  Result<OnnxTensor> tensor(ProtoReader in);
  // Checks a tensor: shape, type and values must agree.
  Status set_values(const ProtoReader& in, const TensorFields& f, bool has_raw,
                    OnnxTensor& t) const;
  Status model_field(const ProtoReader& in, const ProtoField& f, ReadOnce& once, OnnxModel& out);
  Error not_known(std::string message) const { return unsupported(std::move(message), where_); }
  bool everything() const { return reading_ == OnnxReading::everything; }
  Result<OnnxValue> value(ProtoReader in);
  Status type(ProtoReader in, OnnxValue& out);
  Status tensor_type(ProtoReader in, OnnxValue& out);
  Result<OnnxDim> dim(ProtoReader in);
  Result<std::pair<std::string, int64_t>> opset(ProtoReader in);
  Result<std::pair<std::string, std::string>> pair(ProtoReader in);

  template <class T>
  Status room(const ProtoReader& in, const ProtoField& f, std::string_view what,
              const std::vector<T>& list, size_t most) const {
    if (list.size() < most) return {};
    return in.error(f, what, cat("more than ", most));
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  std::string folder_;
  OnnxReading reading_;
  int depth_ = 0;      // graphs inside of graphs
  bool maps_ = false;  // of the type under way
};

}  // namespace loom::core
