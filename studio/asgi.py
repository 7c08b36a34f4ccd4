"""The ASGI application: pages through Django, the Studio's sockets, and limits in front of both."""

import os

from django.core.asgi import get_asgi_application

from studio.environment.starting import plain_refusals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
pages = plain_refusals()(get_asgi_application)()

# They need Django to be set up.
from studio.server.application import with_studio  # noqa: E402
from studio.server.warm import warm_up  # noqa: E402

application = with_studio(pages)
warm_up()
