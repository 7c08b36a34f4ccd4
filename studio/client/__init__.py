"""A client of the HTTP API, sync and async. It needs neither Django nor the engine: see docs/client.md.

with Client("https://studio.example.org", token) as studio:
    instance = studio.start("ship-order", {"customer": "Ada"})
"""

from studio.client.async_client import AsyncClient as AsyncClient
from studio.client.client import Client as Client
from studio.client.errors import AddressError as AddressError
from studio.client.errors import ApiError as ApiError
from studio.client.errors import ClientError as ClientError
from studio.client.errors import ConflictError as ConflictError
from studio.client.errors import InvalidError as InvalidError
from studio.client.errors import NotAllowedError as NotAllowedError
from studio.client.errors import NotAuthenticatedError as NotAuthenticatedError
from studio.client.errors import NotFoundError as NotFoundError
from studio.client.errors import RateLimitedError as RateLimitedError
from studio.client.errors import UnavailableError as UnavailableError
from studio.client.errors import UnexpectedAnswerError as UnexpectedAnswerError
from studio.client.errors import WaitTimeoutError as WaitTimeoutError
from studio.client.errors import WrongField as WrongField
from studio.client.stream import StreamEvent as StreamEvent
