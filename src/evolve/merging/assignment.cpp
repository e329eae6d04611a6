#include "evolve/merging/assignment.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace loom::core {
namespace {

// Columns and rows count from 1; column 0 is the row that is being placed.
class Placement {
 public:
  Placement(std::span<const double> gains, int64_t n)
      : gains_(gains),
        n_(static_cast<size_t>(n)),
        row_price_(n_ + 1),
        column_price_(n_ + 1),
        row_of_(n_ + 1, 0) {}

  void assign_row(size_t row) {
    row_of_[0] = row;
    slack_.assign(n_ + 1, std::numeric_limits<double>::infinity());
    before_.assign(n_ + 1, 0);
    done_.assign(n_ + 1, false);
    size_t column = 0;
    do {
      column = nearest_from(column);
    } while (row_of_[column] != 0);
    // Every row on the path moves to its next column.
    while (column != 0) {
      row_of_[column] = row_of_[before_[column]];
      column = before_[column];
    }
  }
  std::vector<int64_t> columns() const {
    std::vector<int64_t> out(n_);
    for (size_t j = 1; j <= n_; ++j) out[row_of_[j] - 1] = static_cast<int64_t>(j - 1);
    return out;
  }

 private:
  // Grows the tree of shortest paths by one column and keeps prices feasible.
  size_t nearest_from(size_t column) {
    done_[column] = true;
    const size_t row = row_of_[column];
    double least = std::numeric_limits<double>::infinity();
    size_t next = 0;
    for (size_t j = 1; j <= n_; ++j) {
      if (done_[j]) continue;
      const double cost = -gains_[(row - 1) * n_ + (j - 1)] - row_price_[row] - column_price_[j];
      if (cost < slack_[j]) slack_[j] = cost, before_[j] = column;
      if (slack_[j] < least) least = slack_[j], next = j;
    }
    for (size_t j = 0; j <= n_; ++j) {
      if (done_[j]) {
        row_price_[row_of_[j]] += least;
        column_price_[j] -= least;
      } else {
        slack_[j] -= least;
      }
    }
    return next;
  }

  std::span<const double> gains_;
  size_t n_;
  std::vector<double> row_price_, column_price_, slack_;
  std::vector<size_t> row_of_, before_;
  std::vector<bool> done_;
};

}  // namespace

std::vector<int64_t> best_assignment(std::span<const double> gains, int64_t n) {
  Placement placement(gains, n);
  for (int64_t row = 1; row <= n; ++row) placement.assign_row(static_cast<size_t>(row));
  return placement.columns();
}

std::vector<int64_t> greedy_assignment(std::span<const double> gains, int64_t n) {
  // The best free column of each row; searched again if it was taken.
  using Wish = std::tuple<double, int64_t, int64_t>;  // gain, -row, -column: largest first
  const auto width = static_cast<size_t>(n);
  std::vector<bool> taken(width, false);
  const auto wish = [&](int64_t row) {
    const double* gain = gains.data() + row * n;
    int64_t best = -1;
    for (int64_t j = 0; j < n; ++j) {
      if (!taken[static_cast<size_t>(j)] && (best < 0 || gain[j] > gain[best])) best = j;
    }
    return Wish{gain[best], -row, -best};
  };
  std::priority_queue<Wish> wishes;
  for (int64_t row = 0; row < n; ++row) wishes.push(wish(row));
  std::vector<int64_t> out(width, -1);
  while (!wishes.empty()) {
    const auto [gain, minus_row, minus_column] = wishes.top();
    wishes.pop();
    const int64_t row = -minus_row, column = -minus_column;
    if (taken[static_cast<size_t>(column)]) {
      wishes.push(wish(row));
      continue;
    }
    taken[static_cast<size_t>(column)] = true;
    out[static_cast<size_t>(row)] = column;
  }
  return out;
}

}  // namespace loom::core
