// Alignment of models that are combined: classes are matched by name; columns of inputs and
// divisions of weights must be equal.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "evolve/merging/merge.hpp"
#include "grid/network.hpp"

namespace loom::core {

// The index in `other` of each of `names`. Empty if the order is the same, or if one of them is
// empty. Errors: invalid_argument (other classes).
Result<std::vector<int64_t>> class_order(const std::vector<std::string>& names,
                                         const std::vector<std::string>& other);

// Parameter rows in another model's class order, by path. Row i is the old row order[i]; rows
// beyond `order` stay.
using RowOrders = std::unordered_map<std::string, std::vector<int64_t>>;
void reorder_rows(const RowOrders& orders, const Param& param, std::vector<float>& values);

// Errors: invalid_argument (both record their columns, and they differ).
Status same_columns(const NamedModel& like, const NamedModel& other);

// The Dense layer whose rows are the classes; null if the outputs come from another layer, or if
// other cells read them too.
const Node* layer_of_classes(const Network& network);

// How to move rows of `other` so that its classes are numbered as in `like`. A note reports moves,
// or that only one model has class names. Errors: invalid_argument (other classes; no
// layer_of_classes()).
Result<RowOrders> match_by_name(const NamedModel& like, const NamedModel& other,
                                const Network& network, std::vector<std::string>& notes);

// Layers whose weights are divided differently (heads, groups, kernels), by path "(0, 0, 1, 0)/0":
// "heads 4, not 2", with b's value first.
std::unordered_map<std::string, std::string> other_divisions(const Network& a, const Network& b);

}  // namespace loom::core
