"""A client of Holdfast: runs whose events survive a lost connection."""

from . import wire
from ._answer import Answer
from ._async_client import AsyncClient
from ._client import Client
from ._errors import BrokenLog, ConnectionLost, HoldfastError, Problem

__all__ = ["Answer", "AsyncClient", "BrokenLog", "Client", "ConnectionLost", "HoldfastError", "Problem", "wire"]
