// Several models that answer together.
#include "loom/ensemble.hpp"

#include "capi/options/options_as.hpp"

using namespace loom;
using namespace loom::capi;

namespace {

Error wrong_shape(std::string_view what, const Tensor& given, std::string_view required) {
  return invalid(std::string(what) + " " + shape_text(given.shape()) + " of " +
                 std::string(dtype_name(given.dtype())) + ": give [models, samples] of " +
                 std::string(required));
}

Result<std::vector<Mask>> masks_of(const loom_tensor* given) {
  LOOM_ASSIGN(const Tensor masks, tensor_of(given, "masks"));
  if (masks.rank() != 2) return wrong_shape("masks", masks, "uint8");
  LOOM_ASSIGN(const Tensor wide, masks.to(DType::float64));
  LOOM_ASSIGN(const std::span<const double> values, wide.values<double>());
  const auto each = static_cast<size_t>(masks.shape()[1]);
  std::vector<Mask> out(static_cast<size_t>(masks.shape()[0]), Mask(each));
  for (size_t i = 0; i < values.size(); ++i) out[i / each][i % each] = values[i] != 0;
  return out;
}

Result<std::vector<std::vector<int64_t>>> classes_of(const loom_tensor* given) {
  LOOM_ASSIGN(const Tensor votes, tensor_of(given, "votes"));
  if (votes.rank() != 2) return wrong_shape("classes", votes, "int64");
  LOOM_ASSIGN(const Tensor rows, votes.copied());
  LOOM_ASSIGN(const std::span<const int64_t> values, rows.values<int64_t>());
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(votes.shape()[0]));
  const auto each = static_cast<size_t>(votes.shape()[1]);
  for (size_t m = 0; m < out.size(); ++m) {
    const auto row = values.subspan(m * each, each);
    out[m].assign(row.begin(), row.end());
  }
  return out;
}

Result<std::vector<Tensor>> tensors_of(const loom_tensor* given, int64_t count) {
  LOOM_ASSIGN(const auto tensors, list_of(given, count, "shares"));
  std::vector<Tensor> out;
  for (const loom_tensor& tensor : tensors) {
    LOOM_ASSIGN(Tensor made, tensor_of(&tensor, "shares"));
    out.push_back(std::move(made));
  }
  return out;
}

std::vector<double> weights_of(const double* weights, size_t count) {
  if (weights == nullptr) return {};
  return {weights, weights + count};
}

}  // namespace

extern "C" {

loom_status loom_complementary_pairs(const loom_tensor* masks, double least, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::vector<Mask> all, masks_of(masks));
    LOOM_ASSIGN(const auto pairs, complementary_pairs(all, least));
    std::vector<double> rows;
    for (const ComplementaryPair& p : pairs) {
      rows.insert(rows.end(),
                  {static_cast<double>(p.a), static_cast<double>(p.b), p.coverage, p.overlap});
    }
    LOOM_ASSIGN(Tensor made, Tensor::copy(rows, {static_cast<int64_t>(pairs.size()), 4}));
    return give(out, std::move(made));
  });
}

loom_status loom_greedy_cover(const loom_tensor* masks, int64_t most, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::vector<Mask> all, masks_of(masks));
    LOOM_ASSIGN(const Cover cover, greedy_cover(all, most));
    std::vector<double> rows;
    for (size_t i = 0; i < cover.models.size(); ++i)
      rows.insert(rows.end(), {static_cast<double>(cover.models[i]), cover.coverage[i]});
    LOOM_ASSIGN(Tensor made, Tensor::copy(rows, {static_cast<int64_t>(cover.models.size()), 2}));
    return give(out, std::move(made));
  });
}

loom_status loom_majority_vote(const loom_tensor* votes, const double* weights, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const auto classes, classes_of(votes));
    LOOM_ASSIGN(const std::vector<int64_t> voted,
                majority_vote(classes, weights_of(weights, classes.size())));
    LOOM_ASSIGN(Tensor made, Tensor::copy(voted, {static_cast<int64_t>(voted.size())}));
    return give(out, std::move(made));
  });
}

loom_status loom_soft_vote(const loom_tensor* shares, int64_t count, const double* weights,
                           loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::vector<Tensor> all, tensors_of(shares, count));
    LOOM_ASSIGN(Tensor mean, soft_vote(all, weights_of(weights, all.size())));
    return give(out, std::move(mean));
  });
}

loom_status loom_stack_inputs(const loom_tensor* shares, int64_t count, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::vector<Tensor> all, tensors_of(shares, count));
    LOOM_ASSIGN(Tensor beside, stack_inputs(all));
    return give(out, std::move(beside));
  });
}

loom_status loom_stack(loom_engine* engine, const loom_tensor* shares, int64_t count,
                       const int64_t* labels, int64_t label_count, const loom_options* options,
                       loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::vector<Tensor> all, tensors_of(shares, count));
    LOOM_ASSIGN(const auto classes, list_of(labels, label_count, "labels"));
    LOOM_ASSIGN(StackOptions how, options_as<StackOptions>(options));
    LOOM_ASSIGN(how.engine, engine_of(engine));
    LOOM_ASSIGN(Network judge, stack(all, {classes.begin(), classes.end()}, how));
    return give(out, std::move(judge));
  });
}

}  // extern "C"
