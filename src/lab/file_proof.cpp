#include "lab/file_proof.hpp"

#include "base/numbers/dmath.hpp"
#include "base/threads/thread_pool.hpp"
#include "bridge/entity_network.hpp"
#include "grid/init.hpp"
#include "grid/session.hpp"
#include "io/bytes/hash.hpp"
#include "lab/logits_hash.hpp"

namespace loom::core {
namespace {

// Two passes on made-up inputs, so that states and feedback links are seen too.
Status run(const Network& network, const Ops& ops, ThreadPool& pool, FileProof& proof) {
  SessionOptions options;
  options.sequences = network.input()[0];
  LOOM_ASSIGN(Session session, Session::create(network, ops, pool, network.input(), options));
  const bool ids = network.vocab() > 0;
  std::vector<float> numbers(static_cast<size_t>(network.input().count()));
  std::vector<int32_t> tokens(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(0.5 * dmath::sin(0.11 * static_cast<double>(i) + 0.3));
    if (ids) tokens[i] = static_cast<int32_t>(static_cast<int64_t>(i) * 7 % network.vocab());
  }
  Tensor x;
  x.dtype = ids ? DType::i32 : DType::f32;
  x.shape = network.input();
  x.row_stride = x.shape.last();
  x.data = ids ? reinterpret_cast<std::byte*>(tokens.data())
               : reinterpret_cast<std::byte*>(numbers.data());
  BitsHash hash;
  bool finite = true, any = false;
  for (int pass = 0; pass < 2; ++pass) {
    LOOM_ASSIGN(const Tensor y, session.forward(x, 0, network.cells().size()));
    const std::span<const float> values(y.f32(), static_cast<size_t>(y.shape.count()));
    hash.add(values);
    for (const float v : values) {
      finite = finite && v - v == 0.0f;
      any = any || v != 0.0f;
    }
  }
  proof.output = hash.hex();
  proof.alive = finite && any;
  return {};
}

Status describe_file(const std::string& path, FileProof& proof) {
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  proof.file = hash_hex(file.bytes());
  proof.bytes = static_cast<int64_t>(file.bytes().size());
  return {};
}

Status train(Network& network, const FileProofOptions& options, const Ops& ops, ThreadPool& pool) {
  TrainStepOptions how;
  how.clip = {Clip::norm, 1.0f};
  how.dtype = options.dtype;
  LOOM_ASSIGN(TrainStep step, TrainStep::create(network, how, ops, pool));
  fill_with_sines(step, network.vocab());
  for (int i = 0; i < options.hot_steps; ++i) LOOM_TRY(step.run(0.01));
  return {};
}

}  // namespace

Result<FileProof> prove_saving(const NetworkSpec& spec, const FileProofOptions& options,
                               const std::string& path, const Ops& ops, ThreadPool& pool) {
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(options.batch)));
  LOOM_TRY(init_params(network, options.dtype, options.seed, pool));
  if (options.hot_steps > 0) LOOM_TRY(train(network, options, ops, pool));
  FileProof proof;
  LOOM_TRY(run(network, ops, pool, proof));
  LOOM_TRY(save_network(path, spec, network));
  LOOM_TRY(describe_file(path, proof));
  return proof;
}

Result<FileProof> prove_opening(const std::string& path, const std::string& copy, int64_t batch,
                                const Ops& ops, ThreadPool& pool) {
  LOOM_ASSIGN(const std::shared_ptr<const Entity> file, open_entity(path));
  LOOM_ASSIGN(const MappedNetwork mapped, map_network(file, batch));
  FileProof proof;
  LOOM_TRY(run(mapped.network, ops, pool, proof));
  LOOM_TRY(save_network(copy, mapped.spec, mapped.network));
  LOOM_TRY(describe_file(copy, proof));
  return proof;
}

}  // namespace loom::core
