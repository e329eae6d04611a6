"""Keras 3: what a model's backend makes of it in inference, a jaxpr or PyTorch's exported graph.

Functional, sequential and subclassed models alike: layers called twice, operators and loops count
as they are executed. Kernels, gates and paddings are then those of the backend's operations, so no
rule of Keras' own layouts can be wrong. The scopes of JAX hold the names of layers.
"""

from importlib import import_module
from typing import Any, List

from ..errors import UnsupportedError


def absorb_model(model: Any, inputs: List[Any]) -> Any:
    """The plan, the inputs as arrays, and what the model says of them (empty with problems)."""
    keras: Any = import_module("keras")
    backend = keras.backend.backend()
    name = f"{keras.__version__} on {backend}"
    if backend == "jax":
        from .jax import absorb_function

        def called(*x: Any) -> Any:
            return model(x[0] if len(x) == 1 else list(x), training=False)

        plan, arrays, said = absorb_function(called, inputs)
    elif backend == "torch":
        torch: Any = import_module("torch")
        from .torch import absorb_module

        given = tuple(torch.as_tensor(i).cpu() for i in inputs)
        plan, arrays, said = absorb_module(model, given)
    else:
        raise UnsupportedError(
            f"Keras on {backend} shows no graph: save the model, set KERAS_BACKEND=jax or torch, "
            "load it and absorb it there"
        )
    plan.framework, plan.version, plan.name = "Keras", name, str(model.name)
    return plan, arrays, said
