// Linear models, and what is done to features before them. See ml.hpp.
#include "onnx/interpreter/ml/ml.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers/dmath.hpp"

namespace loom::core::evaluate {

Result<FeatureRows> feature_rows(const Call& c) {
  FeatureRows out;
  LOOM_ASSIGN(out.values, c.as(0, OnnxType::f64));
  const Dims& dims = out.values.dims;
  if (dims.empty() || dims.size() > 2) return c.bad("takes rows of features");
  out.width = dims.back();
  out.count = dims.size() == 2 ? dims[0] : 1;
  return out;
}

Result<std::vector<double>> ml_numbers(const Call& c, std::string_view name) {
  const OnnxAttribute* plain = c.node.find(name);
  if (plain != nullptr) return std::vector<double>(plain->reals.begin(), plain->reals.end());
  const OnnxAttribute* tensor = c.node.find(cat(name, "_as_tensor"));
  if (tensor == nullptr) tensor = c.node.find(cat(name, "_tensor"));
  if (tensor == nullptr || tensor->tensors.size() != 1) return std::vector<double>{};
  LOOM_ASSIGN(const Value v, value_of(c.rt.memory, tensor->tensors[0]));
  LOOM_ASSIGN(const Value wide, cast(c.rt.memory, v, OnnxType::f64));
  return std::vector<double>(wide.data<double>(), wide.data<double>() + wide.count());
}

Result<PostTransform> post_transform(const Call& c) {
  const std::string name = c.text("post_transform", "NONE");
  if (name == "NONE") return PostTransform::none;
  if (name == "SOFTMAX") return PostTransform::softmax;
  if (name == "LOGISTIC") return PostTransform::logistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::softmax_zero;
  return c.not_done(cat("post_transform ", printable(name)));
}

namespace {

double logistic(double x) {
  return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

}  // namespace

void transform_scores(PostTransform how, double* scores, int64_t n) {
  if (how == PostTransform::none || n == 0) return;
  if (how == PostTransform::logistic) {
    std::transform(scores, scores + n, scores, logistic);
    return;
  }
  const double most = *std::max_element(scores, scores + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    // SOFTMAX_ZERO: scores that are 0 stay it.
    const bool none = how == PostTransform::softmax_zero && std::abs(scores[i]) <= 1e-7;
    scores[i] = none ? 0 : exp(scores[i] - most);
    sum += scores[i];
  }
  for (int64_t i = 0; i < n && sum > 0; ++i) scores[i] /= sum;
}

size_t best_score(const std::vector<double>& scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

void second_score(std::vector<double>& scores, int how, PostTransform post) {
  const double s = scores[0];
  if (post == PostTransform::logistic)
    scores = {logistic(-s), logistic(s)};
  else if (how < 2)
    scores = {1 - s, s};
  else
    scores = {-s, s};
}

Result<Dims> class_labels(const Call& c, std::string_view integers, std::string_view strings) {
  if (c.given(strings)) return c.not_done(cat(strings, ", text,"));
  return c.list(integers);
}

namespace {

Status give_float(const Call& c, const std::vector<double>& v, Dims dims, size_t output = 0) {
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, std::move(dims)));
  std::transform(v.begin(), v.end(), y.data<float>(), [](double x) { return float(x); });
  return c.give(std::move(y), output);
}

// scores[r][k] = sum_i x[r][i] w[k][i] + b[k]
Result<std::vector<double>> linear(const Call& c, const FeatureRows& x, int64_t outputs,
                                   const std::vector<double>& w, const std::vector<double>& b) {
  if (outputs < 1 || static_cast<int64_t>(w.size()) != outputs * x.width ||
      (!b.empty() && static_cast<int64_t>(b.size()) != outputs))
    return c.bad(cat(w.size(), " coefficients and ", b.size(), " intercepts for ", outputs,
                     " outputs of ", x.width, " features"));
  std::vector<double> out(static_cast<size_t>(x.count * outputs));
  for (int64_t r = 0; r < x.count; ++r) {
    for (int64_t k = 0; k < outputs; ++k) {
      double sum = b.empty() ? 0 : b[static_cast<size_t>(k)];
      for (int64_t i = 0; i < x.width; ++i)
        sum += x.row(r)[i] * w[static_cast<size_t>(k * x.width + i)];
      out[static_cast<size_t>(r * outputs + k)] = sum;
    }
  }
  return out;
}

Status linear_regressor(const Call& c) {
  LOOM_ASSIGN(const FeatureRows x, feature_rows(c));
  LOOM_ASSIGN(const PostTransform post, post_transform(c));
  LOOM_ASSIGN(const std::vector<double> w, ml_numbers(c, "coefficients"));
  LOOM_ASSIGN(const std::vector<double> b, ml_numbers(c, "intercepts"));
  const int64_t targets = c.integer("targets", 1);
  LOOM_ASSIGN(std::vector<double> y, linear(c, x, targets, w, b));
  for (int64_t r = 0; r < x.count; ++r) transform_scores(post, y.data() + r * targets, targets);
  return give_float(c, y, {x.count, targets});
}

Status linear_classifier(const Call& c) {
  LOOM_ASSIGN(const FeatureRows x, feature_rows(c));
  LOOM_ASSIGN(const PostTransform post, post_transform(c));
  LOOM_ASSIGN(const Dims labels, class_labels(c, "classlabels_ints", "classlabels_strings"));
  LOOM_ASSIGN(const std::vector<double> w, ml_numbers(c, "coefficients"));
  LOOM_ASSIGN(const std::vector<double> b, ml_numbers(c, "intercepts"));
  const int64_t given = x.width > 0 ? static_cast<int64_t>(w.size()) / x.width : 0;
  LOOM_ASSIGN(const std::vector<double> all, linear(c, x, given, w, b));
  const bool two = given == 1 && labels.size() == 2;
  if (!two && !labels.empty() && static_cast<int64_t>(labels.size()) != given)
    return c.bad(cat(labels.size(), " labels for ", given, " scores"));
  LOOM_ASSIGN(Value label, c.make(OnnxType::i64, {x.count}));
  std::vector<double> scores;
  for (int64_t r = 0; r < x.count; ++r) {
    std::vector<double> own(all.begin() + r * given, all.begin() + (r + 1) * given);
    const size_t best = given == 1 ? (own[0] > 0 ? 1 : 0) : best_score(own);
    label.data<int64_t>()[r] = best < labels.size() ? labels[best] : static_cast<int64_t>(best);
    if (two)
      second_score(own, 1, post);
    else
      transform_scores(post, own.data(), given);
    scores.insert(scores.end(), own.begin(), own.end());
  }
  LOOM_TRY(c.give(std::move(label), 0));
  return give_float(c, scores, {x.count, two ? 2 : given}, 1);
}

// (x - offset) * scale, of each feature or of all.
Status scaler(const Call& c) {
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(const std::vector<double> offset, ml_numbers(c, "offset"));
  LOOM_ASSIGN(const std::vector<double> scale, ml_numbers(c, "scale"));
  const auto width = static_cast<size_t>(x.last());
  for (const auto* list : {&offset, &scale}) {
    if (list->size() != width && list->size() != 1)
      return c.bad(cat(list->size(), " numbers for ", width, " features"));
  }
  std::vector<double> y(static_cast<size_t>(x.count()));
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t k = i % width;
    y[i] = (x.data<double>()[i] - offset[offset.size() == 1 ? 0 : k]) *
           scale[scale.size() == 1 ? 0 : k];
  }
  return give_float(c, y, x.dims);
}

// Rows over their largest value, their sum of sizes, or their length.
Status normalizer(const Call& c) {
  LOOM_ASSIGN(const FeatureRows x, feature_rows(c));
  const std::string norm = c.text("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") return c.bad("norm must be MAX, L1 or L2");
  std::vector<double> y;
  for (int64_t r = 0; r < x.count; ++r) {
    const double* row = x.row(r);
    double size = norm == "MAX" && x.width > 0 ? row[0] : 0;
    for (int64_t i = 0; i < x.width; ++i) {
      if (norm == "MAX")
        size = std::max(size, row[i]);
      else
        size += norm == "L1" ? std::abs(row[i]) : row[i] * row[i];
    }
    if (norm == "L2") size = std::sqrt(size);
    for (int64_t i = 0; i < x.width; ++i) y.push_back(size != 0 ? row[i] / size : row[i]);
  }
  return give_float(c, y, c.value(0).dims);
}

Status binarizer(const Call& c) {
  const double threshold = c.real("threshold", 0);
  LOOM_ASSIGN(Value x, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, x.dims));
  std::transform(x.data<double>(), x.data<double>() + x.count(), y.data<double>(),
                 [&](double v) { return v > threshold ? 1.0 : 0.0; });
  return c.give_as(y, c.value(0).type);
}

Status imputer(const Call& c) {
  const bool whole = is_whole(c.value(0).type);
  std::vector<double> values;
  if (whole) {
    const Dims list = c.list("imputed_value_int64s");
    values.assign(list.begin(), list.end());
  } else {
    LOOM_ASSIGN(values, ml_numbers(c, "imputed_value_floats"));
  }
  const double replaced = whole ? static_cast<double>(c.integer("replaced_value_int64", 0))
                                : c.real("replaced_value_float", 0);
  const Value& x = c.value(0);
  const auto width = static_cast<size_t>(x.last());
  if (values.size() != 1 && values.size() != width)
    return c.bad(cat(values.size(), " values for ", width, " features"));
  LOOM_ASSIGN(const Value wide, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, x.dims));
  for (int64_t i = 0; i < x.count(); ++i) {
    const double v = wide.data<double>()[i];
    const bool gone = replaced != replaced ? v != v : v == replaced;
    const size_t k = values.size() == 1 ? 0 : static_cast<size_t>(i) % width;
    y.data<double>()[i] = gone ? values[k] : v;
  }
  return c.give_as(y, x.type);
}

// Inputs beside each other, as floats.
Status feature_vectorizer(const Call& c) {
  const Dims widths = c.list("inputdimensions");
  if (widths.size() != c.in.size()) return c.bad("one width for each input");
  int64_t rows = -1, width = 0;
  std::vector<Value> parts;
  for (size_t i = 0; i < c.in.size(); ++i) {
    LOOM_ASSIGN(Value v, c.as(i, OnnxType::f32));
    const int64_t own = v.rank() == 2 ? v.dims[0] : 1;
    if (v.rank() < 1 || v.rank() > 2 || (rows >= 0 && own != rows) || widths[i] < 0 ||
        widths[i] > v.last())
      return c.bad(cat("input ", i, " is not ", widths[i], " features of as many rows"));
    rows = own;
    width += widths[i];
    parts.push_back(std::move(v));
  }
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, {std::max<int64_t>(rows, 0), width}));
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < parts.size(); ++i)
      out = std::copy_n(parts[i].data<float>() + r * parts[i].last(), widths[i], out);
  }
  return c.give(std::move(y));
}

Status ml_one_hot(const Call& c) {
  if (c.given("cats_strings")) return c.not_done("cats_strings, text,");
  const Dims cats = c.list("cats_int64s");
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::i64));
  Dims dims = x.dims;
  const auto width = static_cast<int64_t>(cats.size());
  dims.push_back(width);
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, dims));
  fill_zero(y);
  for (int64_t i = 0; i < x.count(); ++i) {
    const auto at = std::ranges::find(cats, x.data<int64_t>()[i]);
    if (at != cats.end())
      y.data<float>()[i * width + (at - cats.begin())] = 1;
    else if (c.integer("zeros", 1) == 0)
      return c.bad(cat("the value ", x.data<int64_t>()[i], " is not a category"));
  }
  return c.give(std::move(y));
}

// Keys or values of a LabelEncoder as doubles. Integers beyond 2^53 are refused.
Result<std::vector<double>> encoder_list(const Call& c, const std::string& which, bool& whole) {
  const Dims integers = c.list(which + "_int64s");
  whole = !integers.empty();
  if (std::ranges::any_of(integers, [](int64_t v) { return v > (1LL << 53) || -v > (1LL << 53); }))
    return c.not_done("integers beyond 2^53");
  if (whole) return std::vector<double>(integers.begin(), integers.end());
  const OnnxAttribute* tensor = c.node.find(which + "_tensor");
  if (tensor != nullptr && tensor->tensors.size() == 1) whole = !is_real(tensor->tensors[0].type);
  return ml_numbers(c, tensor != nullptr ? which : which + "_floats");
}

Status label_encoder(const Call& c) {
  for (const std::string_view text : {"keys_strings", "values_strings", "classes_strings"}) {
    if (c.given(text)) return c.not_done(cat(text, ", text,"));
  }
  bool whole_keys = false, whole = false;
  LOOM_ASSIGN(const std::vector<double> keys, encoder_list(c, "keys", whole_keys));
  LOOM_ASSIGN(const std::vector<double> values, encoder_list(c, "values", whole));
  if (keys.size() != values.size()) return c.bad("as many keys as values");
  double otherwise =
      whole ? static_cast<double>(c.integer("default_int64", -1)) : c.real("default_float", -0.0);
  LOOM_ASSIGN(const std::vector<double> given, ml_numbers(c, "default"));
  if (given.size() == 1) otherwise = given[0];
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, x.dims));
  for (int64_t i = 0; i < x.count(); ++i) {
    const double v = x.data<double>()[i];
    const auto at =
        std::ranges::find_if(keys, [&](double k) { return k == v || (k != k && v != v); });
    y.data<double>()[i] =
        at == keys.end() ? otherwise : values[static_cast<size_t>(at - keys.begin())];
  }
  const OnnxAttribute* tensor = c.node.find("values_tensor");
  const OnnxType type = tensor != nullptr && tensor->tensors.size() == 1
                            ? tensor->tensors[0].type
                            : (whole ? OnnxType::i64 : OnnxType::f32);
  return c.give_as(y, type);
}

// A list of maps, each from labels to the values of a row: the values themselves.
Status zip_map(const Call& c) {
  const OnnxAttribute* keys = c.node.find("classlabels_int64s");
  const OnnxAttribute* names = c.node.find("classlabels_strings");
  const size_t count = keys != nullptr    ? keys->integers.size()
                       : names != nullptr ? names->texts.size()
                                          : 0;
  if (static_cast<int64_t>(count) != c.value(0).last()) return c.bad("a key for each column");
  return c.give(c.value(0));
}

constexpr Operator kMl[] = {
    {"ai.onnx.ml", "LinearRegressor", linear_regressor,
     "a coefficients intercepts post_transform targets"},
    {"ai.onnx.ml", "LinearClassifier", linear_classifier,
     "a classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform"},
    {"ai.onnx.ml", "Scaler", scaler, "a offset scale"},
    {"ai.onnx.ml", "Normalizer", normalizer, "a norm"},
    {"ai.onnx.ml", "Binarizer", binarizer, "a threshold"},
    {"ai.onnx.ml", "Imputer", imputer,
     "a imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64"},
    {"ai.onnx.ml", "FeatureVectorizer", feature_vectorizer, "a+ inputdimensions"},
    {"ai.onnx.ml", "OneHotEncoder", ml_one_hot, "a cats_int64s cats_strings zeros"},
    {"ai.onnx.ml", "LabelEncoder", label_encoder,
     "a classes_strings default_float default_int64 default_string default_tensor keys_floats "
     "keys_int64s keys_strings keys_tensor values_floats values_int64s values_strings "
     "values_tensor"},
    {"ai.onnx.ml", "ZipMap", zip_map, "a classlabels_int64s classlabels_strings"},
};

}  // namespace

std::span<const Operator> ml_operators() {
  return kMl;
}

}  // namespace loom::core::evaluate
