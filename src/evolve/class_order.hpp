// Models that are put together agree on what is at which place: classes are matched by name, and
// columns of inputs and divisions of weights must be the same.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "evolve/merge.hpp"
#include "grid/network.hpp"

namespace loom::core {

// The place in `other` of each of `names`. Empty: the order is the same, or one of them is empty.
// Errors: invalid_argument (other classes).
Result<std::vector<int64_t>> class_order(const std::vector<std::string>& names,
                                         const std::vector<std::string>& other);

// Rows of parameters in the order of another model's classes, by path. Row i is what was row
// order[i]; rows beyond `order` stay.
using RowOrders = std::unordered_map<std::string, std::vector<int64_t>>;
void reorder_rows(const RowOrders& orders, const Param& param, std::vector<float>& values);

// Errors: invalid_argument (both know the columns that they take, and these are not the same).
Status same_columns(const NamedModel& like, const NamedModel& other);

// The Dense layer whose rows are the classes; null: the outputs come from another layer, or are
// read by other cells too.
const Node* layer_of_classes(const Network& network);

// How the rows of `other` move so that its classes are numbered as those of `like`. A note tells
// if they move, or if only one of the models has names of classes. Errors: invalid_argument (other
// classes; no layer_of_classes()).
Result<RowOrders> match_by_name(const NamedModel& like, const NamedModel& other,
                                const Network& network, std::vector<std::string>& notes);

// Layers whose weights are divided otherwise (heads, groups, kernels), by place "(0, 0, 1, 0)/0":
// "heads 4, not 2", first what b has.
std::unordered_map<std::string, std::string> other_divisions(const Network& a, const Network& b);

}  // namespace loom::core
