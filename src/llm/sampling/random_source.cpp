// Random weights as a ModelSource: for benchmarks and tests that need a shape and no file.
#include <map>

#include "base/numbers/rng.hpp"
#include "base/threads/thread_pool.hpp"
#include "llm/decoder.hpp"
#include "llm/decoder_role.hpp"
#include "llm/encoder.hpp"
#include "llm/model_source.hpp"

namespace loom::core {
namespace {

class RandomSource : public ModelSource {
 public:
  RandomSource(uint64_t seed, ThreadPool& pool) : seed_(seed), pool_(pool) {}
  Status describe(const DecoderConfig& shape);
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  uint64_t seed_;
  ThreadPool& pool_;
  // By block and role: the number of the parameter.
  std::map<std::pair<int64_t, DecoderRole>, uint64_t> streams_;
};

Status RandomSource::describe(const DecoderConfig& shape) {
  path = "random weights";
  config = shape;
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(config));
  each_decoder_param(grid, [&](const Param& param) {
    const DecoderPiece piece = decoder_piece(param);
    streams_.emplace(std::pair(piece.block, piece.role), streams_.size());
  });
  return {};
}

Result<SourceWeight> RandomSource::weight(const Param& param) const {
  const DecoderPiece piece = decoder_piece(param);
  const auto stream = streams_.find({piece.block, piece.role});
  if (stream == streams_.end()) return invalid("the shape has no such parameter", param.path);
  SourceWeight weight;
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  const float spread =
      param.spec.matrix() ? 1.7320508f / __builtin_sqrtf(static_cast<float>(cols)) : 0.0f;
  const float centre = param.spec.init == Init::ones ? 1.0f : 0.0f;
  weight.rows = [this, cols, spread, centre, stream = stream->second](int64_t first, int64_t count,
                                                                      float* out) -> Status {
    pool_.run([&](int lane, int lanes) {
      const LaneRange mine = lane_range(count * cols, 4, lane, lanes);
      for (int64_t j = mine.begin; j < mine.end; j += 4) {
        const PhiloxBlock block =
            philox(seed_, stream, static_cast<uint64_t>(first * cols + j) / 4);
        for (int64_t k = 0; k < 4 && j + k < mine.end; ++k) {
          const float u = static_cast<float>(block[static_cast<size_t>(k)] >> 8) * 0x1p-23f - 1.0f;
          out[j + k] = centre + spread * u;
        }
      }
    });
    return {};
  };
  return weight;
}

}  // namespace

Result<std::unique_ptr<ModelSource>> random_source(const DecoderConfig& config, uint64_t seed,
                                                   ThreadPool& pool) {
  auto source = std::make_unique<RandomSource>(seed, pool);
  LOOM_TRY(source->describe(config));
  return std::unique_ptr<ModelSource>(std::move(source));
}

Result<GridSpec> model_grid(const ModelSource& source) {
  return source.encoder ? encoder_grid(*source.encoder) : decoder_grid(source.config);
}

bool is_model_table(const Param& param, const ModelSource& source) {
  return source.encoder ? is_encoder_table(param)
                        : is_vocabulary_matrix(param, source.config.vocab_size);
}

DType model_dtype(const Param& param, const ModelSource& source, DType requested) {
  if (!source.encoder) return decoder_dtype(param, source.config, requested);
  return dtype_info(requested).bits < 8 && is_encoder_table(param) ? DType::q8_0 : requested;
}

DType decoder_dtype(const Param& param, const DecoderConfig& config, DType requested) {
  const int bits = dtype_info(requested).bits;
  if (bits <= 8 && is_router(decoder_piece(param).role)) return DType::f32;
  const bool narrow = bits < 8;
  return narrow && is_vocabulary_matrix(param, config.vocab_size) ? DType::q8_0 : requested;
}

}  // namespace loom::core
