"""Optimizers and schedules: what a trainer is told by name, or with constants of one's own."""

from dataclasses import dataclass
from typing import ClassVar, Optional, Sequence


@dataclass(frozen=True)
class Optimizer:
    """Constants that are None are the usual ones."""

    rate: float = 1e-3
    beta1: Optional[float] = None
    beta2: Optional[float] = None
    eps: Optional[float] = None
    weight_decay: Optional[float] = None
    KIND: ClassVar[str] = "adam"


class Sgd(Optimizer):
    KIND = "sgd"


class Momentum(Optimizer):
    KIND = "momentum"


class Nesterov(Optimizer):
    KIND = "nesterov"


class RmsProp(Optimizer):
    KIND = "rmsprop"


class Adam(Optimizer):
    KIND = "adam"


class AdamW(Optimizer):
    KIND = "adamw"


class Lion(Optimizer):
    KIND = "lion"


class Lbfgs(Optimizer):
    KIND = "lbfgs"


class Adagrad(Optimizer):
    KIND = "adagrad"


class Adadelta(Optimizer):
    KIND = "adadelta"


class NAdam(Optimizer):
    KIND = "nadam"


class Adamax(Optimizer):
    KIND = "adamax"


class RAdam(Optimizer):
    KIND = "radam"


class Lamb(Optimizer):
    KIND = "lamb"


class Adafactor(Optimizer):
    KIND = "adafactor"


class Muon(Optimizer):
    KIND = "muon"


class Kfac(Optimizer):
    KIND = "kfac"


class Sophia(Optimizer):
    KIND = "sophia"


OPTIMIZERS = {
    c.KIND: c
    for c in (Sgd, Momentum, Nesterov, RmsProp, Adam, AdamW, Lion, Lbfgs, Adagrad, Adadelta, NAdam,
              Adamax, RAdam, Lamb, Adafactor, Muon, Kfac, Sophia)
}  # fmt: skip


@dataclass(frozen=True)
class Schedule:
    """How the learning rate goes on; the kinds are those of `loom train --schedule`."""

    kind: str = "constant"
    floor: float = 0.0
    gamma: float = 0.1
    power: float = 2.0
    every: int = 10
    milestones: Sequence[int] = ()
    warmup: int = 0
    patience: int = 5
