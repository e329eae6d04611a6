// k-means, the silhouette, linkage and pairing compared with scikit-learn and SciPy, through the
// public interface if there is one.
#include "loom/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/numbers/rng.hpp"
#include "evolve/merging/assignment.hpp"
#include "evolve/vectors.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

loom::Tensor tensor_of(const JsonValue& rows) {
  const std::vector<double> values = test::numbers_of(rows);
  const auto n = static_cast<int64_t>(rows.elements().size());
  return loom::Tensor::copy(values, {n, static_cast<int64_t>(values.size()) / n}).value();
}

// Labels by first appearance, so that the same groups have the same numbers.
std::vector<int64_t> compact(std::vector<int64_t> labels) {
  std::vector<int64_t> seen;
  for (int64_t& label : labels) {
    const auto found = std::ranges::find(seen, label);
    const int64_t number = found - seen.begin();
    if (found == seen.end()) seen.push_back(label);
    label = number;
  }
  return labels;
}

loom::Tensor random_points(int64_t n, int64_t d, uint64_t seed) {
  const Rng rng(seed, 3);
  std::vector<float> values(static_cast<size_t>(n * d));
  for (size_t i = 0; i < values.size(); ++i) values[i] = rng.uniform(i) * 10;
  return loom::Tensor::copy(values, {n, d}).value();
}

TEST(KMeans, EndsWhereScikitLearnEnds) {
  for (const JsonValue& c : test::vector_cases("kmeans")) {
    const loom::Tensor points = tensor_of(*c.find("points"));
    const auto k = static_cast<int64_t>(c.find("start")->elements().size());
    const Clusters groups =
        kmeans(points, {.clusters = k, .start = tensor_of(*c.find("start"))}).value();
    EXPECT_EQ(groups.labels, test::integers_of(*c.find("labels")));
    EXPECT_TRUE(groups.converged);
    EXPECT_NEAR(groups.inertia, test::number_in(c, "inertia"), 1e-9 * groups.inertia);
    const std::vector<double> expected = test::numbers_of(*c.find("centers"));
    const auto centers = groups.centers.values<double>().value();
    ASSERT_EQ(centers.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(centers[i], expected[i], 1e-11);
    for (const auto& [name, value] : c.find("silhouette")->members()) {
      EXPECT_NEAR(silhouette(points, groups.labels, parse_distance(name).value()).value(),
                  value.as_double(name).value(), 1e-12)
          << name;
    }
  }
}

TEST(KMeans, DependsOnTheSeedAndNotOnThreads) {
  const loom::Tensor points = random_points(300, 3, 1);
  for (const bool plus_plus : {true, false}) {
    std::vector<int64_t> first;
    double inertia = 0;
    for (const int threads : {1, 2, 3, 7}) {
      const Engine engine = Engine::create({.threads = threads, .exact_threads = true}).value();
      const Clusters groups =
          kmeans(
              points,
              {.clusters = 6, .seed = 5, .plus_plus = plus_plus, .restarts = 3, .engine = engine})
              .value();
      if (first.empty()) first = groups.labels, inertia = groups.inertia;
      EXPECT_EQ(groups.labels, first) << threads;
      EXPECT_EQ(groups.inertia, inertia) << threads;
    }
    const Clusters other =
        kmeans(points, {.clusters = 6, .seed = 6, .plus_plus = plus_plus, .restarts = 1}).value();
    EXPECT_NE(other.labels, first);
  }
}

TEST(KMeans, GivesAPointBetweenTwoCentresToTheFirst) {
  const std::vector<float> points = {-1, 0, 1}, start = {-1, 1};
  const Clusters groups =
      kmeans(loom::Tensor::copy(points, {3, 1}).value(),
             {.clusters = 2, .start = loom::Tensor::copy(start, {2, 1}).value()})
          .value();
  EXPECT_THAT(groups.labels, ElementsAre(0, 0, 1));
}

TEST(KMeans, NeverHasMoreInertiaWithMoreRestarts) {
  const loom::Tensor points = random_points(120, 2, 9);
  double before = INFINITY;
  for (const int64_t restarts : {1, 4, 16}) {
    const double inertia = kmeans(points, {.clusters = 7, .restarts = restarts}).value().inertia;
    EXPECT_LE(inertia, before);
    before = inertia;
  }
}

TEST(KMeans, GivesEveryPointACentreWhereThereAreFew) {
  const loom::Tensor points = random_points(3, 2, 2);
  const Clusters groups = kmeans(points, {.clusters = 8}).value();
  EXPECT_EQ(compact(groups.labels), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(groups.inertia, 0);
  const std::vector<float> same(10, 1.5f);
  const Clusters equal = kmeans(loom::Tensor::copy(same, {5, 2}).value(), {.clusters = 3}).value();
  EXPECT_EQ(equal.inertia, 0) << "points that are all one place";
}

TEST(Silhouette, KnowsPairsFarApartAndPointsAlone) {
  const std::vector<float> values = {0, 0.1f, 10, 10.1f, 50};
  const loom::Tensor five = loom::Tensor::copy(values, {5, 1}).value();
  const loom::Tensor four = five.slice(0, 4).value();
  EXPECT_GT(silhouette(four, {0, 0, 1, 1}).value(), 0.9);
  EXPECT_EQ(silhouette(four, {0, 0, 0, 0}).value(), 0) << "one cluster";
  EXPECT_EQ(silhouette(four, {0, 1, 2, 3}).value(), 0) << "all alone";
  const double with_alone = silhouette(five, {0, 0, 1, 1, 2}).value();
  const double pairs = silhouette(four, {0, 0, 1, 1}).value();
  EXPECT_NEAR(with_alone, pairs * 4 / 5, 1e-3) << "a point alone counts 0";
}

TEST(Linkage, IsThatOfScipy) {
  for (const JsonValue& c : test::vector_cases("linkage")) {
    LinkageOptions options;
    options.method = parse_linkage_method(c.find("method")->text()).value();
    options.distance = parse_distance(c.find("distance")->text()).value();
    const Linkage tree = linkage(tensor_of(*c.find("points")), options).value();
    const auto& rows = c.find("merges")->elements();
    ASSERT_EQ(tree.merges.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double> row = test::numbers_of(rows[i]);
      const LinkageMerge& merge = tree.merges[i];
      EXPECT_EQ(static_cast<double>(merge.a), row[0]) << i;
      EXPECT_EQ(static_cast<double>(merge.b), row[1]) << i;
      EXPECT_NEAR(merge.distance, row[2], 1e-12) << i;
      EXPECT_EQ(static_cast<double>(merge.points), row[3]) << i;
    }
    const double threshold = test::number_in(c, "threshold");
    EXPECT_EQ(tree.cut_at(threshold + 1e-12), compact(test::integers_of(*c.find("cut"))));
  }
}

TEST(Linkage, JoinsTheLinksOfAChain) {
  const std::vector<float> chain = {0, 1, 2, 3, 10, 11};
  const loom::Tensor points = loom::Tensor::copy(chain, {6, 1}).value();
  const Linkage single = linkage(points).value();
  EXPECT_THAT(single.cut_at(1.0), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(single.cut_at(0.5), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(single.cut_into(2), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(single.cut_into(99), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(single.cut_into(-3), ElementsAre(0, 0, 0, 0, 0, 0));
  const Linkage complete = linkage(points, {.method = LinkageMethod::complete}).value();
  EXPECT_EQ(complete.cut_at(1.0)[2], complete.cut_at(1.0)[3]);
  EXPECT_NE(complete.cut_at(1.0)[0], complete.cut_at(1.0)[3]) << "a chain is not compact";
}

TEST(Linkage, OfDistancesIsThatOfTheirPoints) {
  const loom::Tensor points = random_points(12, 2, 4);
  const auto rows = points.values<float>().value();
  std::vector<double> all(144);
  for (size_t i = 0; i < 12; ++i) {
    for (size_t j = 0; j < 12; ++j) {
      const double x = static_cast<double>(rows[2 * i]) - static_cast<double>(rows[2 * j]);
      const double y = static_cast<double>(rows[2 * i + 1]) - static_cast<double>(rows[2 * j + 1]);
      all[i * 12 + j] = std::sqrt(x * x + y * y);
    }
  }
  for (const LinkageMethod method :
       {LinkageMethod::single, LinkageMethod::complete, LinkageMethod::average}) {
    const Linkage a = linkage(points, {.method = method}).value();
    const Linkage b =
        linkage_of_distances(loom::Tensor::copy(all, {12, 12}).value(), {.method = method}).value();
    for (int64_t k = 1; k <= 12; ++k) EXPECT_EQ(a.cut_into(k), b.cut_into(k));
  }
}

TEST(Assignment, HasTheLargestSumThereIs) {
  for (const JsonValue& c : test::vector_cases("assignment")) {
    const std::vector<double> gains = test::numbers_of(*c.find("gains"));
    const int64_t n = c.find("n")->as_int("n").value();
    EXPECT_EQ(best_assignment(gains, n), test::integers_of(*c.find("columns")));
  }
  // Compared with every permutation, for small sizes.
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Rng rng(seed, 5);
    const auto n = static_cast<int64_t>(1 + seed % 6);
    std::vector<double> gains(static_cast<size_t>(n * n));
    for (size_t i = 0; i < gains.size(); ++i)
      gains[i] = std::round(static_cast<double>(rng.uniform(i)) * 8) / 4 - 1;  // many are equal
    const auto sum_of = [&](const std::vector<int64_t>& columns) {
      double sum = 0;
      for (int64_t r = 0; r < n; ++r)
        sum += gains[static_cast<size_t>(r * n + columns[static_cast<size_t>(r)])];
      return sum;
    };
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    double best = -INFINITY;
    do best = std::max(best, sum_of(order));
    while (std::next_permutation(order.begin(), order.end()));
    EXPECT_NEAR(sum_of(best_assignment(gains, n)), best, 1e-12) << seed;
    std::vector<int64_t> greedy = greedy_assignment(gains, n);
    EXPECT_LE(sum_of(greedy), best + 1e-12);
    std::ranges::sort(greedy);
    std::iota(order.begin(), order.end(), 0);
    EXPECT_EQ(greedy, order) << "one to one";
  }
}

TEST(Cluster, RefusesBadInputInOneLine) {
  const loom::Tensor points = random_points(4, 2, 1);
  const std::vector<float> hole = {0, NAN, 1, 2};
  const loom::Tensor broken = loom::Tensor::copy(hole, {2, 2}).value();
  const std::vector<double> askew = {0, 1, 2, 0};
  const std::vector<int32_t> whole = {1, 2};
  const auto says = [](const auto& result) {
    return result.ok() ? std::string("no error") : result.error().str();
  };
  const std::pair<std::string, const char*> cases[] = {
      {says(kmeans(points, {.clusters = 0})), "clusters 0: must be at least 1"},
      {says(kmeans(points, {.restarts = 0})), "restarts"},
      {says(kmeans(points, {.tolerance = -1})), "tolerance"},
      {says(kmeans(broken)), "point 0, column 1: is not a finite number"},
      {says(kmeans(loom::Tensor())), "give [n, d]"},
      {says(kmeans(loom::Tensor::copy(whole, {2, 1}).value())), "give float32 or float64"},
      {says(kmeans(points, {.clusters = 3, .start = points})), "start must be [3, 2]"},
      {says(silhouette(points, {0, 1})), "2 labels for 4 points"},
      {says(silhouette(points, {0, 1, -1, 0})), "a label is negative"},
      {says(linkage_of_distances(points)), "give [n, n]"},
      {says(linkage_of_distances(loom::Tensor::copy(askew, {2, 2}).value())), "the same both ways"},
      {says(load_points("no_such_file.csv")), "no_such_file.csv"},
      {says(group_tensors("no_such_file")), "no such file or folder"},
      {says(parse_distance("far")), "euclidean, manhattan, cosine"},
      {says(parse_linkage_method("ward")), "single, complete, average"},
  };
  for (const auto& [message, expected] : cases) {
    EXPECT_THAT(message, HasSubstr(expected));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(GroupTensors, FindsTheLayersOfACheckpoint) {
  const std::vector<TensorGroup> groups =
      group_tensors(loom_test::source_path("tests/data/stories")).value();
  ASSERT_FALSE(groups.empty());
  const auto attention =
      std::ranges::find(groups, "model.layers.1.self_attn", &TensorGroup::prefix);
  ASSERT_NE(attention, groups.end());
  EXPECT_EQ(attention->type, "MultiHeadAttention");
  EXPECT_EQ(attention->tensors.size(), 4u);
  EXPECT_EQ(attention->tensors[0].role, "q");
  const auto feed = std::ranges::find(groups, "model.layers.1.mlp", &TensorGroup::prefix);
  ASSERT_NE(feed, groups.end());
  EXPECT_EQ(feed->type, "SwiGLU");
  EXPECT_THAT(feed->settings, HasSubstr("inner"));
  int64_t tensors = 0;
  for (const TensorGroup& group : groups) tensors += static_cast<int64_t>(group.tensors.size());
  EXPECT_GT(tensors, 30) << "every tensor is in a group";
}

}  // namespace
}  // namespace loom::core
