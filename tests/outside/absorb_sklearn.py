"""Fitted estimators of scikit-learn, by name, for absorb_check.py."""

import numpy as np
from sklearn import (
    cluster,
    compose,
    datasets,
    decomposition,
    discriminant_analysis,
    ensemble,
    linear_model,
    naive_bayes,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

X, CLASSES = datasets.load_iris(return_X_y=True)
X = X.astype(np.float32)
BINARY = (CLASSES > 0).astype(int)
TARGET = X[:, 0] * 2 + CLASSES
BOTH = np.stack([TARGET, X[:, 1] - TARGET], 1)


def modules():
    """(name, estimator, example inputs)."""
    yield from ((name, model, X) for name, model in estimators())


def estimators():
    """(name, estimator) of all; each is fitted on request."""
    lm, pp, dc, en, nn = linear_model, preprocessing, decomposition, ensemble, neural_network
    mlp = {"max_iter": 60, "random_state": 0}
    yield from regressors(lm, en, nn, mlp)
    yield from classifiers(lm, en, nn, mlp)
    for model in (
        pp.StandardScaler(),
        pp.StandardScaler(with_mean=False),
        pp.RobustScaler(),
        pp.MinMaxScaler((-1, 2)),
        pp.MinMaxScaler(clip=True),
        pp.MaxAbsScaler(),
        pp.Normalizer("l1"),
        pp.Normalizer("l2"),
        pp.Normalizer("max"),
        pp.Binarizer(threshold=1.5),
        pp.FunctionTransformer(np.exp),
        dc.PCA(2),
        dc.PCA(3, whiten=True),
        dc.TruncatedSVD(2),
        dc.IncrementalPCA(2),
        dc.FastICA(2, random_state=0),
        cluster.KMeans(3, n_init=2, random_state=0),
    ):
        yield str(model), model.fit(X)
    columns = compose.ColumnTransformer(
        [("a", pp.StandardScaler(), [0, 2]), ("b", "passthrough", [1]), ("c", "drop", [3])]
    )
    pipes = [
        pipeline.make_pipeline(pp.StandardScaler(), dc.PCA(3), lm.LogisticRegression()),
        pipeline.make_pipeline(columns, en.RandomForestClassifier(5, random_state=0)),
        pipeline.make_pipeline(pp.MinMaxScaler(), nn.MLPClassifier((12,), **mlp)),
    ]
    for i, model in enumerate(pipes):
        yield f"Pipeline {i}", model.fit(X, CLASSES)
    yield "FeatureUnion", pipeline.make_union(pp.StandardScaler(), dc.PCA(2)).fit(X)


def regressors(lm, en, nn, mlp):
    for model in (
        lm.LinearRegression(),
        lm.Ridge(),
        lm.Lasso(0.01),
        lm.ElasticNet(0.01),
        lm.SGDRegressor(random_state=0),
        svm.LinearSVR(),
        lm.BayesianRidge(),
        lm.HuberRegressor(),
        lm.PoissonRegressor(),
        lm.TweedieRegressor(power=0),
        nn.MLPRegressor(hidden_layer_sizes=(6,), activation="logistic", **mlp),
        tree.DecisionTreeRegressor(),
        tree.DecisionTreeRegressor(max_depth=1),
        tree.ExtraTreeRegressor(random_state=0),
        en.RandomForestRegressor(9),
        en.ExtraTreesRegressor(9),
        en.GradientBoostingRegressor(n_estimators=30),
        en.HistGradientBoostingRegressor(max_iter=20),
        en.BaggingRegressor(n_estimators=4),
        en.VotingRegressor(
            [("a", lm.Ridge()), ("b", tree.DecisionTreeRegressor())], weights=[1, 2]
        ),
        compose.TransformedTargetRegressor(lm.Ridge(), transformer=preprocessing.StandardScaler()),
    ):
        yield str(type(model).__name__), model.fit(X, TARGET)
    for model in (
        lm.LinearRegression(),
        lm.MultiTaskLasso(0.01),
        tree.DecisionTreeRegressor(),
        nn.MLPRegressor(hidden_layer_sizes=(7, 5), activation="tanh", **mlp),
    ):
        yield f"{type(model).__name__} of two targets", model.fit(X, BOTH)


def classifiers(lm, en, nn, mlp):
    for name, target in (("3 classes", CLASSES), ("2 classes", BINARY)):
        for model in (
            lm.LogisticRegression(),
            lm.RidgeClassifier(),
            lm.Perceptron(),
            svm.LinearSVC(),
            discriminant_analysis.LinearDiscriminantAnalysis(),
            naive_bayes.GaussianNB(),
            nn.MLPClassifier((8,), **mlp),
            tree.DecisionTreeClassifier(),
            en.RandomForestClassifier(20),
            en.ExtraTreesClassifier(10),
            en.BaggingClassifier(n_estimators=4),
            en.GradientBoostingClassifier(n_estimators=10),
            en.HistGradientBoostingClassifier(max_iter=10),
        ):
            yield f"{type(model).__name__} of {name}", model.fit(X, target)
    yield "SGDClassifier", lm.SGDClassifier(loss="log_loss", random_state=0).fit(X, BINARY)
    voters = [("a", lm.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3))]
    yield "VotingClassifier", en.VotingClassifier(voters, voting="soft").fit(X, CLASSES)
    yield "one leaf", tree.DecisionTreeClassifier().fit(X, np.zeros(len(X)))
