"""Metrics of scikit-learn for small predictions: the values of tests/learn/scores_test.cpp."""

import numpy as np
from sklearn import metrics

LOGITS = np.array([[2.0, 0.5, -1.0], [0.1, 0.2, 0.0], [-1.0, 1.5, 1.0], [0.0, 0.0, 2.5],
                   [1.0, 1.2, -0.5], [0.3, -0.2, 0.9], [2.2, -1.0, 0.4], [-0.5, 0.8, 0.7]])
LABELS = np.array([0, 1, 2, 2, 0, 2, 0, 1])
P = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
print("accuracy", metrics.accuracy_score(LABELS, LOGITS.argmax(1)))
print("top2", metrics.top_k_accuracy_score(LABELS, P, k=2))
print("macro_f1", metrics.f1_score(LABELS, LOGITS.argmax(1), average="macro"))
print("auc", metrics.roc_auc_score(LABELS, P, multi_class="ovr", average="macro"))
conf, right = P.max(1), P.argmax(1) == LABELS
bins = np.ceil(conf * 15) - 1
ece = sum(abs((right[bins == b] - conf[bins == b]).sum()) for b in range(15)) / len(LABELS)
print("ece", ece)
X = np.array([0.5, -1.0, 2.0, 0.5, -0.25, 1.5, 0.5])
T = np.array([1, 0, 1, 0, 1, 1, 0])
Q = 1 / (1 + np.exp(-X))
print("binary auc", metrics.roc_auc_score(T, X), "bce", metrics.log_loss(T, Q),
      "accuracy", metrics.accuracy_score(T, X > 0))
Y = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25], [-2.0, 4.0]])
H = np.array([[1.5, 1.0], [0.25, -0.5], [2.0, 0.0], [-1.0, 3.5]])
print("mae", metrics.mean_absolute_error(Y, H), "r2", metrics.r2_score(Y, H))
