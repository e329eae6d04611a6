"""Signatures of functions that hand their options on, so that help() and editors list them."""

import inspect
from typing import Any, Callable, Sequence, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def options_of(source: Callable[..., Any], *, but: Sequence[str] = ()) -> Callable[[_F], _F]:
    """The decorated function shows the keywords of `source` in place of **options."""

    def decorate(function: _F) -> _F:
        own = inspect.signature(function)
        kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {p.name for p in kept} | set(but)
        further = [
            p
            for p in inspect.signature(source).parameters.values()
            if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in taken
        ]
        shown: Any = function
        shown.__signature__ = own.replace(parameters=[*kept, *further])
        return function

    return decorate
