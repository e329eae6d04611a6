#include "learn/data/split.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kStream = uint64_t{1} << 49;  // not those of the epochs of Trainer

// Samples of one class, or all of them, in a random order.
struct Group {
  std::vector<int64_t> rows;
  int64_t quota = 0;     // so many of them train
  double remainder = 0;  // what rounding the quota down took off
};

std::vector<Group> groups_of(const Dataset& data, bool by_class, uint64_t seed) {
  std::vector<Group> groups;
  std::map<int32_t, size_t> group_of;  // of a class among the groups
  for (const int64_t row : permutation(data.samples, seed, kStream)) {
    const int32_t label = by_class ? data.labels[static_cast<size_t>(row)] : 0;
    const auto [found, fresh] = group_of.emplace(label, groups.size());
    if (fresh) groups.emplace_back();
    groups[found->second].rows.push_back(row);
  }
  return groups;
}

// Quotas that sum to `total`. Groups are in a random order, which decides between equal remainders.
void set_quotas(std::vector<Group>& groups, double share, int64_t total) {
  std::vector<Group*> order;
  for (Group& group : groups) {
    const double exact = share * static_cast<double>(group.rows.size());
    group.quota = static_cast<int64_t>(exact);
    group.remainder = exact - static_cast<double>(group.quota);
    total -= group.quota;
    order.push_back(&group);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Group* a, const Group* b) { return a->remainder > b->remainder; });
  for (size_t i = 0; i < order.size() && total > 0; ++i) {
    if (order[i]->quota == static_cast<int64_t>(order[i]->rows.size())) continue;
    ++order[i]->quota;
    --total;
  }
}

}  // namespace

namespace {

// The samples that train: all but those of the fold. Samples are dealt to the folds in turn, class
// by class. So fold sizes differ by at most one, in each class and in total.
Result<std::vector<bool>> outside_fold(const Dataset& data, const SplitSpec& spec, bool by_class) {
  if (spec.folds < 2 || spec.folds > data.samples)
    return invalid(cat(spec.folds, " folds of ", data.samples,
                       " samples; give at least 2, and at most one for each sample"));
  if (spec.fold < 0 || spec.fold >= spec.folds)
    return invalid(cat("fold ", spec.fold, " must be from 0 to ", spec.folds - 1));
  std::vector<bool> trains(static_cast<size_t>(data.samples), true);
  if (!spec.shuffle) {
    const int64_t each = data.samples / spec.folds, rest = data.samples % spec.folds;
    const int64_t first = spec.fold * each + std::min(spec.fold, rest);
    const int64_t count = each + (spec.fold < rest ? 1 : 0);
    for (int64_t i = first; i < first + count; ++i) trains[static_cast<size_t>(i)] = false;
    return trains;
  }
  int64_t dealt = 0;
  for (const Group& group : groups_of(data, by_class, spec.seed)) {
    for (const int64_t row : group.rows)
      trains[static_cast<size_t>(row)] = dealt++ % spec.folds != spec.fold;
  }
  return trains;
}

Result<std::vector<bool>> within_share(const Dataset& data, const SplitSpec& spec, bool by_class,
                                       int64_t total) {
  std::vector<Group> groups = groups_of(data, by_class, spec.seed);
  set_quotas(groups, spec.share, total);
  std::vector<bool> trains(static_cast<size_t>(data.samples));
  for (const Group& group : groups) {
    for (int64_t i = 0; i < group.quota; ++i)
      trains[static_cast<size_t>(group.rows[static_cast<size_t>(i)])] = true;
  }
  for (int64_t row = 0; !spec.shuffle && row < data.samples; ++row)
    trains[static_cast<size_t>(row)] = row < total;
  return trains;
}

}  // namespace

Result<SplitDataset> split_dataset(Dataset data, const SplitSpec& spec) {
  if (!(spec.share >= 0 && spec.share <= 1)) {
    return invalid("the share of samples that train must be between 0 and 1");
  }
  const auto total =
      static_cast<int64_t>(std::floor(spec.share * static_cast<double>(data.samples) + 0.5));
  if (spec.folds == 0 && (total < 1 || total >= data.samples)) {
    return invalid(cat("a split that trains ", total, " of ", data.samples,
                       " samples; both parts need at least one"));
  }
  const bool by_class = spec.shuffle && data.has_labels() && data.labels_per_sample() == 1;
  LOOM_ASSIGN(const std::vector<bool> trains, spec.folds != 0
                                                  ? outside_fold(data, spec, by_class)
                                                  : within_share(data, spec, by_class, total));
  std::vector<int64_t> train, validation;
  for (int64_t row = 0; row < data.samples; ++row)
    (trains[static_cast<size_t>(row)] ? train : validation).push_back(row);
  Dataset held_out = data.select(validation);
  data.keep(train);
  return SplitDataset{std::move(data), std::move(held_out), by_class};
}

}  // namespace loom::core
