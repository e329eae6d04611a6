#include "formats/gguf/export.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "dtype/codecs/codec.hpp"
#include "dtype/dtype_tally.hpp"
#include "dtype/r16/r16_blocks.hpp"
#include "formats/gguf/config.hpp"
#include "formats/gguf/names.hpp"
#include "formats/gguf/rope.hpp"
#include "formats/gguf/tokenizer/export_tokenizer.hpp"
#include "formats/gguf/write.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

constexpr int64_t kRows = 16;  // converted at a time: a group of R16

// llama.cpp's file type for matrices of this type.
uint32_t file_type(std::string_view ggml) {
  constexpr struct {
    std::string_view name;
    uint32_t id;
  } kTypes[] = {{"F32", 0},   {"F16", 1},   {"Q4_0", 2},  {"Q4_1", 3},  {"Q8_0", 7},
                {"Q5_0", 8},  {"Q5_1", 9},  {"Q2_K", 10}, {"Q3_K", 12}, {"Q4_K", 15},
                {"Q5_K", 17}, {"Q6_K", 18}, {"BF16", 32}, {"MXFP4", 38}};
  for (const auto& row : kTypes)
    if (row.name == ggml) return row.id;
  return 0;
}

class Exporter {
 public:
  Exporter(const ModelSource& source, const GgufExportOptions& options)
      : source_(source), options_(options) {}

  Status write(const std::string& path) {
    family_ = find_family_in_gguf(source_.config);
    if (family_ == nullptr) {
      return unsupported(cat("GGUF has no class ", source_.config.architecture,
                             "; write an .entity file or a folder"),
                         source_.path);
    }
    if (options_.dtype && ggml_of_dtype(*options_.dtype) == nullptr) {
      std::vector<std::string> names;
      for (const DTypeInfo& info : dtype_table())
        if (ggml_of_dtype(info.dtype) != nullptr) names.emplace_back(info.name);
      return unsupported(
          cat("GGUF has no type ", dtype_name(*options_.dtype), "; choose ", join(names, ", ")),
          path);
    }
    if (source_.encoder)
      return unsupported("encoders are not written as GGUF; write an .entity file", source_.path);
    LOOM_ASSIGN(const GridSpec grid, decoder_grid(source_.config));
    LOOM_ASSIGN(const Network network, Network::finalize(grid, Shape{1, 1}));
    total_ = static_cast<int64_t>(network.params().size());
    std::vector<GgufOutput> tensors;
    for (const Param& param : network.params()) LOOM_TRY(add(param, tensors));
    if (source_.config.rope == RopeKind::llama3) tensors.push_back(rope_factors());
    GgufMetadata metadata;
    LOOM_TRY(write_gguf_config(source_.config, *family_, metadata));
    metadata.u32("general.file_type", file_type(body_type()));
    metadata.u32("general.quantization_version", 2);
    LOOM_TRY(write_gguf_tokenizer(source_, metadata));
    return write_gguf_file(path, metadata, tensors);
  }

 private:
  std::string_view body_type() const {
    return types_of_blocks_.empty() ? "F32" : ggml_of_dtype(types_of_blocks_.most())->name;
  }

  static bool fits(DType type, const Param& param) {
    return gguf_block_bytes(type) == 0 || param.spec.shape[1] % gguf_block_values(type) == 0;
  }

  DType type_of(const Param& param, DType stored) const {
    if (!param.spec.matrix() || is_router(decoder_piece(param).role)) return DType::f32;
    DType type = options_.dtype.value_or(stored);
    const bool narrow = options_.dtype && dtype_info(type).bits < 8;
    if (narrow && is_vocabulary_matrix(param, source_.config.vocab_size)) type = DType::q8_0;
    // As in llama.cpp: if a row is not a multiple of super-blocks, blocks of 32 of about that size.
    if (!fits(type, param)) type = dtype_info(type).bits > 4 ? DType::q8_0 : DType::q5_0;
    if (!fits(type, param)) type = DType::f16;
    return ggml_of_dtype(type) == nullptr ? DType::f32 : type;
  }

  // A separate tensor for the parameter, or rows appended to an added tensor: fused projections
  // hold several parameters, in network order.
  Status add(const Param& param, std::vector<GgufOutput>& tensors) {
    const TensorPart part = gguf_tensor(param, source_.config, family_->gguf);
    const std::string& name = part.name;
    const int64_t head = has_paired_rows(param, family_->gguf) ? source_.config.head_dim : 0;
    if (part.first_row > 0) {
      const auto whole = std::find_if(tensors.begin(), tensors.end(),
                                      [&](const GgufOutput& t) { return t.name == name; });
      if (whole == tensors.end() || whole->shape[0] != part.first_row)
        return make_error(Code::internal, cat("the rows of ", name, " are out of order"));
      whole->shape[0] += param.spec.shape[0];
      const DType type = types_.at(name);
      whole->write = [this, before = whole->write, param = &param, type,
                      head](const GgufSink& sink) -> Status {
        LOOM_TRY(before(sink));
        return write_param(*param, type, head, sink);
      };
      return {};
    }
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source_, param));
    const DType type = type_of(param, weight.stored);
    types_[name] = type;
    GgufOutput out;
    out.name = name;
    out.type = ggml_of_dtype(type)->name;
    const Shape shape = part.stacked > 0 || decoder_piece(param).role == DecoderRole::shared_router
                            ? gguf_shape(param, part)
                            : param.spec.shape;
    for (int i = 0; i < shape.rank(); ++i) out.shape.push_back(shape[i]);
    if (param.spec.matrix() && !is_vocabulary_matrix(param, source_.config.vocab_size))
      types_of_blocks_.add(type, param.spec.shape.count());
    out.write = [this, param = &param, type, head](const GgufSink& sink) {
      return write_param(*param, type, head, sink);
    };
    tensors.push_back(std::move(out));
    return {};
  }

  Status write_param(const Param& param, DType type, int64_t head, const GgufSink& sink) {
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source_, param));
    const int64_t rows = param.spec.matrix() ? param.spec.shape[0] : param.spec.shape.count();
    const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
    if (weight.copy_row && weight.stored == type && gguf_block_bytes(type) > 0) {
      LOOM_TRY(move_blocks(weight, r16_geometry(type, rows, cols), head, sink));
    } else {
      LOOM_TRY(convert(weight, type, rows, cols, head, sink));
    }
    if (weight.release) weight.release();
    if (options_.progress && !options_.progress(++done_, total_))
      return make_error(Code::cancelled, "writing was stopped");
    return {};
  }

  Status move_blocks(const SourceWeight& weight, const R16& g, int64_t head,
                     const GgufSink& sink) const {
    std::vector<std::byte> matrix(static_cast<size_t>(g.bytes()));
    for (int64_t row = 0; row < g.rows; ++row) LOOM_TRY(weight.copy_row(row, g, matrix.data()));
    return write_rows(g, matrix.data(), head, sink);
  }

  // Rows in file order: kRows at a time if the source has the same order.
  Status convert(const SourceWeight& weight, DType type, int64_t rows, int64_t cols, int64_t head,
                 const GgufSink& sink) const {
    const int64_t step = cols == 1 && head == 0 ? rows : kRows;
    std::vector<float> values(static_cast<size_t>(std::min(step, rows) * cols));
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t count = std::min(step, rows - row);
      if (head == 0) {
        LOOM_TRY(weight.rows(row, count, values.data()));
      } else {
        for (int64_t i = 0; i < count; ++i)
          LOOM_TRY(weight.rows(unpaired_row(row + i, head), 1, values.data() + i * cols));
      }
      const auto refuse = [&](int64_t at) {
        return too_large(weight.tensor, cols, row * cols + at, dtype_name(type), source_.path);
      };
      LOOM_TRY(encode(type, values.data(), count, cols, sink, refuse));
    }
    return {};
  }

  // `count` <= kRows rows, or a vector. Refuses a value that the type cannot represent.
  Status encode(DType type, const float* values, int64_t count, int64_t cols, const GgufSink& sink,
                const std::function<Error(int64_t at)>& refuse) const {
    const auto n = static_cast<size_t>(count * cols);
    if (type == DType::f32) return sink(std::as_bytes(std::span(values, n)));
    if (gguf_block_bytes(type) == 0) {
      std::vector<uint16_t> codes(n);
      for (size_t i = 0; i < n; ++i)
        codes[i] = type == DType::f16 ? f16_from_f32(values[i]) : bf16_from_f32(values[i]);
      const uint16_t infinity = type == DType::f16 ? 0x7c00 : 0x7f80;
      for (size_t i = 0; i < n && !source_.allow_nonfinite; ++i) {
        if ((codes[i] & 0x7fff) == infinity && std::isfinite(values[i]))
          return refuse(static_cast<int64_t>(i));
      }
      return sink(std::as_bytes(std::span(codes)));
    }
    const R16 g = r16_geometry(type, count, cols);
    std::vector<std::byte> matrix(static_cast<size_t>(g.bytes()));
    r16_pack(g, values, 0, count, ScaleScope::per_row, {}, matrix.data());
    if (!source_.allow_nonfinite && !check_finite(r16_tensor(g, matrix.data()), false, {}, {}).ok())
      return refuse(0);
    return write_rows(g, matrix.data(), 0, sink);
  }

  // The blocks of all rows of a packed matrix, in file order.
  static Status write_rows(const R16& g, const std::byte* matrix, int64_t head,
                           const GgufSink& sink) {
    const int64_t count = g.cols / gguf_block_values(g.dtype);
    std::vector<std::byte> blocks(static_cast<size_t>(count * gguf_block_bytes(g.dtype)));
    for (int64_t row = 0; row < g.rows; ++row) {
      const int64_t from = head == 0 ? row : unpaired_row(row, head);
      if (!r16_get_blocks(g, matrix, from, blocks.data())) {
        return bad_file(cat("a block of ", dtype_name(g.dtype), " in row ", from,
                            " has a scale that GGUF has no bits for"));
      }
      LOOM_TRY(sink(blocks));
    }
    return {};
  }

  GgufOutput rope_factors() const {
    const std::vector<float> factors = llama3_factors(source_.config);
    return {"rope_freqs.weight",
            "F32",
            {static_cast<int64_t>(factors.size())},
            [factors](const GgufSink& sink) { return sink(std::as_bytes(std::span(factors))); }};
  }

  std::unordered_map<std::string, DType> types_;  // of tensors, by name
  const ModelSource& source_;
  const GgufExportOptions& options_;
  const DecoderFamily* family_ = nullptr;
  DTypeTally types_of_blocks_;
  int64_t done_ = 0, total_ = 0;
};

}  // namespace

Status write_gguf(const std::string& path, const ModelSource& source,
                  const GgufExportOptions& options) {
  return Exporter(source, options).write(path);
}

}  // namespace loom::core
