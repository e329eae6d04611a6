// Reads the flatbuffer of a TFLite file. See model.hpp. The numbers of fields are those of TFLite's
// schema.fbs, version 3; fields that are not named here mean nothing to what we read, or are
// refused.
#include "formats/tflite/read.hpp"

#include <algorithm>
#include <limits>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "formats/tflite/ops.hpp"

namespace loom::core {
namespace {

// The options of an operator: which table of the union, and a letter for each of its fields in
// order: b a byte, i 32 bits, f a float, v a list, - nothing that is read; B and I the same with 1
// where the file leaves them out.
struct Options {
  int code;
  int table;
  std::string_view fields;
};
constexpr Options kOptions[] = {
    {kAdd, 11, "b"},
    {kAveragePool, 5, "biiiib"},
    {kConcatenation, 10, "ib"},
    {kConv, 1, "biibII"},
    {kDepthwiseConv, 2, "biiibII"},
    {kDepthToSpace, 94, "i"},
    {kFullyConnected, 8, "bbb"},
    {kL2Normalization, 12, "b"},
    {kL2Pool, 5, "biiiib"},
    {kLocalResponseNormalization, 13, "ifff"},
    {kMaxPool, 5, "biiiib"},
    {kMul, 21, "b"},
    {kReshape, 17, "v"},
    {kResizeBilinear, 15, "--bb"},
    {kSoftmax, 9, "f"},
    {kSpaceToDepth, 19, "i"},
    {kGather, 23, "ii"},
    {kMean, 27, "b"},
    {kSub, 28, "b"},
    {kDiv, 29, "b"},
    {kSqueeze, 30, "v"},
    {kSequenceLstm, 71, "bffb-b"},
    {kStridedSlice, 32, "iiiiib"},
    {kBothWaysLstm, 69, "bffbB"},
    {kArgMax, 40, "b"},
    {kTransposeConv, 49, "biib"},
    {kSum, 27, "b"},
    {kShape, 55, "b"},
    {kArgMin, 57, "b"},
    {kReduceProd, 27, "b"},
    {kReduceMax, 27, "b"},
    {kPack, 59, "ii"},
    {kOneHot, 61, "i"},
    {kUnpack, 64, "ii"},
    {kReduceMin, 27, "b"},
    {kResizeNearest, 74, "bb"},
    {kLeakyRelu, 75, "f"},
    {kMirrorPad, 77, "b"},
    {kBatchMatMul, 101, "bb"},
    {kCumsum, 102, "bb"},
    {kGelu, 116, "b"},
};

template <class T>
bool number_of(const FlatTable& from, int field, double& out) {
  return from.number_as<T>(field, out);
}

// Bytes of a value; 0 for types whose constants are not read.
size_t bytes_of(TfliteType type) {
  switch (type) {
    case TfliteType::i8:
    case TfliteType::u8:
    case TfliteType::boolean: return 1;
    case TfliteType::f16:
    case TfliteType::bf16:
    case TfliteType::i16:
    case TfliteType::u16: return 2;
    case TfliteType::f32:
    case TfliteType::i32:
    case TfliteType::u32: return 4;
    case TfliteType::f64:
    case TfliteType::i64:
    case TfliteType::u64: return 8;
    default: return 0;
  }
}

}  // namespace

bool is_tflite(std::span<const std::byte> file) {
  constexpr std::string_view kMagic = "TFL3";
  return file.size() >= 8 &&
         std::string_view(reinterpret_cast<const char*>(file.data()) + 4, 4) == kMagic;
}

Error TfliteReader::wrong(std::string_view what, std::string_view which) const {
  return bad_file(cat(which, ": its ", what, " is not in the file, or is too long"), where_);
}

Result<TfliteModel> TfliteReader::model() {
  FlatTable root;
  if (!FlatTable::root(flat_, root))
    return bad_file("does not begin with a table of a TFLite model", where_);
  uint32_t version = 0;
  std::vector<FlatTable> graphs;
  if (!root.number(0, version)) return wrong("version", "the model");
  if (version != 3)
    return unsupported(cat("schema version ", version, "; version 3 is read"), where_);
  if (!root.tables(1, kMaxTfliteList, codes_)) return wrong("list of operator codes", "the model");
  if (!root.tables(2, kMaxTfliteList, graphs)) return wrong("list of graphs", "the model");
  if (!root.text(3, out_.description)) return wrong("description", "the model");
  if (!root.tables(4, kMaxTfliteTensors, buffers_)) return wrong("list of buffers", "the model");
  if (graphs.empty()) return unsupported("holds no graph", where_);
  LOOM_TRY(graph(graphs[0]));
  out_.bytes = file_.size();
  return std::move(out_);
}

Status TfliteReader::graph(const FlatTable& from) {
  std::vector<FlatTable> tensors, ops;
  if (!from.tables(0, kMaxTfliteTensors, tensors)) return wrong("list of tensors", "the graph");
  if (!from.list<int32_t>(1, kMaxTfliteList, out_.inputs)) return wrong("inputs", "the graph");
  if (!from.list<int32_t>(2, kMaxTfliteList, out_.outputs)) return wrong("outputs", "the graph");
  if (!from.tables(3, kMaxTfliteOps, ops)) return wrong("list of operators", "the graph");
  for (size_t i = 0; i < tensors.size(); ++i) LOOM_TRY(tensor(tensors[i], cat("tensor ", i)));
  for (size_t i = 0; i < ops.size(); ++i) LOOM_TRY(op(ops[i], cat("operator ", i)));
  LOOM_TRY(check_indexes(out_.inputs, false, "the graph"));
  LOOM_TRY(check_indexes(out_.outputs, false, "the graph"));
  keep_empty();
  return {};
}

// A tensor without values that no operator makes is a constant: axes, or a shape without extents.
void TfliteReader::keep_empty() {
  std::vector<bool> made(out_.tensors.size(), false);
  const auto mark = [&](const std::vector<int64_t>& list) {
    for (const int64_t i : list) {
      if (i >= 0) made[static_cast<size_t>(i)] = true;
    }
  };
  mark(out_.inputs);
  for (const TfliteOp& op : out_.ops) mark(op.outputs);
  for (size_t i = 0; i < made.size(); ++i) {
    TfliteTensor& t = out_.tensors[i];
    const bool none = std::ranges::find(t.dims, 0) != t.dims.end();
    if (none && !made[i] && !t.variable && t.sparsity == nullptr) t.constant = true;
  }
}

Status TfliteReader::check_indexes(const std::vector<int64_t>& list, bool may_lack,
                                   std::string_view which) const {
  for (const int64_t i : list) {
    if (i == -1 && may_lack) continue;
    if (i < 0 || i >= static_cast<int64_t>(out_.tensors.size()))
      return bad_file(cat(which, " names tensor ", i, ", the file has ", out_.tensors.size()),
                      where_);
  }
  return {};
}

Status TfliteReader::tensor(const FlatTable& from, const std::string& which) {
  TfliteTensor t;
  uint32_t buffer = 0;
  auto type = static_cast<int8_t>(t.type);
  FlatTable part;
  bool there = false;
  if (!from.list<int32_t>(0, kMaxTfliteRank, t.dims)) return wrong("shape", which);
  if (!from.number(1, type)) return wrong("type", which);
  if (!from.number(2, buffer)) return wrong("buffer", which);
  if (!from.text(3, t.name)) return wrong("name", which);
  if (!from.number_as<uint8_t>(5, t.variable)) return wrong("mark of a variable", which);
  if (!from.list<int32_t>(7, kMaxTfliteRank, t.signature)) return wrong("signature", which);
  t.type = static_cast<TfliteType>(type);
  const auto below = [](int64_t d) { return d < 0; };
  if (std::ranges::any_of(t.dims, below))
    return bad_file(cat(which, ": an extent below 0"), where_);
  if (!from.table(4, part, there)) return wrong("quantization", which);
  if (there) LOOM_TRY(quantization(part, which, t));
  if (!from.table(6, part, there)) return wrong("sparsity", which);
  if (there) LOOM_TRY(sparsity(part, which, t));
  LOOM_TRY(data(buffer, which, t));
  out_.tensors.push_back(std::move(t));
  return {};
}

Status TfliteReader::quantization(const FlatTable& from, const std::string& which,
                                  TfliteTensor& t) {
  TfliteQuantization q;
  if (!from.list<float>(2, kMaxTfliteTensors, q.scale)) return wrong("scales", which);
  if (!from.list<int64_t>(3, kMaxTfliteTensors, q.zero_point)) return wrong("zero points", which);
  if (!from.number_as<int32_t>(6, q.axis)) return wrong("quantized axis", which);
  if (q.scale.empty()) return {};
  if (q.zero_point.empty()) q.zero_point.assign(q.scale.size(), 0);
  if (q.zero_point.size() == 1) q.zero_point.resize(q.scale.size(), q.zero_point[0]);
  const auto rank = static_cast<int64_t>(t.dims.size());
  const bool per_position = q.scale.size() > 1;
  if (q.zero_point.size() != q.scale.size() ||
      (per_position &&
       (q.axis < 0 || q.axis >= rank ||
        t.dims[static_cast<size_t>(q.axis)] != static_cast<int64_t>(q.scale.size()))))
    return bad_file(cat(which, ": scales or zero points that do not fit its shape"), where_);
  const auto usable = [](float s) { return s > 0 && s <= std::numeric_limits<float>::max(); };
  if (!std::ranges::all_of(q.scale, usable))
    return bad_file(cat(which, ": a scale that is not a number above 0"), where_);
  t.quantization = std::move(q);
  return {};
}

// A list of places: one of three widths.
bool TfliteReader::indices(const FlatTable& from, int field, std::vector<int64_t>& out) {
  uint8_t kind = 0;
  FlatTable list;
  bool there = false;
  if (!from.number(field, kind) || !from.table(field + 1, list, there)) return false;
  if (!there) return true;
  if (kind == 1) return list.list<int32_t>(0, kMaxTfliteSparse, out);
  if (kind == 2) return list.list<uint16_t>(0, kMaxTfliteSparse, out);
  return kind == 3 && list.list<uint8_t>(0, kMaxTfliteSparse, out);
}

Status TfliteReader::sparsity(const FlatTable& from, const std::string& which, TfliteTensor& t) {
  auto out = std::make_shared<TfliteSparsity>();
  std::vector<FlatTable> axes;
  if (!from.list<int32_t>(0, 2 * kMaxTfliteRank, out->order) ||
      !from.list<int32_t>(1, kMaxTfliteRank, out->blocks) ||
      !from.tables(2, 2 * kMaxTfliteRank, axes))
    return wrong("sparsity", which);
  for (const FlatTable& axis : axes) {
    TfliteSparseAxis a;
    if (!axis.number_as<int8_t>(0, a.sparse) || !axis.number_as<int32_t>(1, a.extent) ||
        !indices(axis, 2, a.segments) || !indices(axis, 4, a.indices))
      return wrong("sparsity", which);
    out->axes.push_back(std::move(a));
  }
  t.sparsity = std::move(out);
  return {};
}

Status TfliteReader::data(uint32_t buffer, const std::string& which, TfliteTensor& t) {
  if (buffer >= buffers_.size()) {
    if (buffer == 0) return {};
    return bad_file(cat(which, ": names buffer ", buffer, ", the file has ", buffers_.size()),
                    where_);
  }
  const FlatTable& from = buffers_[buffer];
  uint64_t offset = 0, size = 0, end = 0;
  if (!from.bytes(0, t.data) || !from.number(1, offset) || !from.number(2, size))
    return wrong("buffer", which);
  if (offset > 1 && size > 0) {  // after the flatbuffer
    if (!checked_add(offset, size, end) || end > file_.size())
      return bad_file(cat(which, ": its buffer is outside of the file"), where_);
    t.data = file_.subspan(offset, size);
  }
  t.constant = !t.data.empty();
  if (!t.constant || t.sparsity != nullptr) return {};
  uint64_t count = 1, need = 0;
  bool fits = true;
  for (const int64_t d : t.dims) fits = fits && checked_mul(count, static_cast<uint64_t>(d), count);
  const bool halves = t.type == TfliteType::i4;
  fits = fits && checked_mul(count, halves ? 1 : bytes_of(t.type), need);
  if (halves) need = need / 2 + need % 2;
  if (halves || bytes_of(t.type) != 0) {
    if (!fits || need != t.data.size())
      return bad_file(cat(which, ": ", t.data.size(),
                          " bytes that are not what its shape and type "
                          "need"),
                      where_);
  }
  return {};
}

Status TfliteReader::op(const FlatTable& from, const std::string& which) {
  TfliteOp made;
  uint32_t index = 0;
  if (!from.number(0, index)) return wrong("code", which);
  if (index >= codes_.size())
    return bad_file(cat(which, " names code ", index, ", the file has ", codes_.size()), where_);
  const FlatTable& code = codes_[index];
  int8_t old = 0;
  int32_t now = 0;
  if (!code.number(0, old) || !code.text(1, made.custom) || !code.number(3, now))
    return wrong("code", which);
  made.code = std::max(static_cast<int32_t>(old), now);
  if (!from.list<int32_t>(1, kMaxTfliteList, made.inputs)) return wrong("inputs", which);
  if (!from.list<int32_t>(2, kMaxTfliteList, made.outputs)) return wrong("outputs", which);
  LOOM_TRY(check_indexes(made.inputs, true, which));
  LOOM_TRY(check_indexes(made.outputs, false, which));
  LOOM_TRY(options(from, which, made));
  out_.ops.push_back(std::move(made));
  return {};
}

Status TfliteReader::options(const FlatTable& from, const std::string& which, TfliteOp& made) {
  const auto is = [&](const Options& o) { return o.code == made.code; };
  const auto* row = std::ranges::find_if(kOptions, is);
  if (row == std::end(kOptions)) return {};
  uint8_t kind = 0;
  FlatTable table;
  bool there = false;
  if (!from.number(3, kind) || !from.table(4, table, there)) return wrong("options", which);
  // The interpreter takes the defaults where options are those of another operator; so do we.
  there = there && kind == row->table;
  for (size_t i = 0; i < row->fields.size(); ++i) {
    const char letter = row->fields[i];
    double& out = made.options[i];
    out = letter == 'B' || letter == 'I' ? 1 : 0;
    if (!there) continue;
    const auto field = static_cast<int>(i);
    bool good = true;
    if (letter == 'b' || letter == 'B') good = number_of<int8_t>(table, field, out);
    if (letter == 'i' || letter == 'I') good = number_of<int32_t>(table, field, out);
    if (letter == 'f') good = number_of<float>(table, field, out);
    if (letter == 'v') good = table.list<int32_t>(field, kMaxTfliteList, made.list);
    if (!good) return wrong("options", which);
  }
  return {};
}

Result<TfliteModel> parse_tflite(std::span<const std::byte> file, const std::string& where) {
  if (!is_tflite(file))
    return bad_file("is not a TFLite file: bytes 4 to 7 are not TFL3", where, 4);
  if (file.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return unsupported("more than 2 GB, which no flatbuffer is", where);
  if (reinterpret_cast<uintptr_t>(file.data()) % alignof(uint64_t) != 0)
    return invalid("the bytes of the file must begin at a multiple of 8", where);
  return TfliteReader(file, where).model();
}

}  // namespace loom::core
