"""Static files under names with a hash of their content: browsers keep them, and a changed file is a new one.

Nothing is collected or written: the names are computed from the files where they are, when they are first needed. It
is for the site that is nothing but the Studio; a larger site serves static files as it likes.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urljoin

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import re_accepts_gzip
from django.utils.cache import patch_vary_headers
from django.utils.encoding import filepath_to_uri
from whitenoise.middleware import WhiteNoiseMiddleware

DIGITS = 12  # of the hash in a name
# Styles name them without a hash. A changed font gets another name (studio/vendor/VERSIONS.md).
FONTS = "studio/vendor/fonts/"
TYPES = ("text/", "application/json", "image/svg+xml")  # scripts are text/javascript


class HashedFilesStorage(StaticFilesStorage):
    """Gives each file an address with a hash: `studio/frame/base.3f2a….css`."""

    def url(self, name: str | None) -> str:
        """Return the address of a file. One that no app has gets its plain address."""
        if name is None or settings.DEBUG:
            return super().url(name)
        return _address(self.base_url or "", hashed_name(name))


@cache
def _address(base: str, name: str) -> str:
    """Return an address as Django's storage makes it, once: a page has hundreds of icons."""
    return urljoin(base, filepath_to_uri(name).lstrip("/"))


@cache
def hashed_name(name: str) -> str:
    """Return the name with a hash of the file's content before its extension; the name itself if there is no file."""
    found = finders.find(name)
    if not isinstance(found, str) or not Path(found).is_file() or name.startswith(FONTS):
        return name
    digest = hashlib.sha256(Path(found).read_bytes()).hexdigest()[:DIGITS]
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}.{digest}{path.suffix}"))


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """Serves each file under its plain name and under the one with a hash, compressed if the client accepts that."""

    def add_files_from_finders(self) -> None:
        super().add_files_from_finders()
        for url in list(self.files):
            name = url.removeprefix(self.static_prefix)
            hashed, path = hashed_name(name), finders.find(name)
            if hashed != name and isinstance(path, str):
                self.add_file_to_dictionary(self.static_prefix + hashed, path)

    def immutable_file_test(self, path: str, url: str) -> bool:
        """Return whether what is at this address never changes."""
        name = url.removeprefix(self.static_prefix)
        plain = self.get_name_without_hash(name)
        return name.startswith(FONTS) or (plain != name and hashed_name(plain) == name)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        found = request.path_info
        if found not in self.files and found.startswith(self.static_prefix):
            # A page from before an update asks for a file by its earlier hash.
            earlier = found.removeprefix(self.static_prefix)
            file = self.files.get(self.static_prefix + self.get_name_without_hash(earlier))
            if file is not None:
                return self.serve(file, request)
        return super().__call__(request)

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponseBase:
        """Answer with the file. The whole of a text is compressed once, and then kept in memory."""
        response = WhiteNoiseMiddleware.serve(static_file, request)
        file = getattr(response, "file_to_stream", None)
        if file is None or response.status_code != 200 or not _is_text(response):
            return response
        patch_vary_headers(response, ["Accept-Encoding"])
        if not re_accepts_gzip.search(request.headers.get("Accept-Encoding", "")):
            return response
        packed = _packed(file.name, response.headers["ETag"])
        file.close()  # not the response: that would end the request
        headers = {**response.headers, "Content-Encoding": "gzip", "Content-Length": str(len(packed))}
        return HttpResponse(packed, headers=headers)


def _is_text(response: HttpResponseBase) -> bool:
    return response.headers.get("Content-Type", "").startswith(TYPES)


@lru_cache(maxsize=256)
def _packed(path: str, version: str) -> bytes:
    return gzip.compress(Path(path).read_bytes(), mtime=0)
