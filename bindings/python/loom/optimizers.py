"""The name that `loom.options` had before."""

from .options import *  # noqa: F403
