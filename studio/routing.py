"""The addresses of sockets."""

from django.urls import path

from studio.consumers import StudioConsumer

websocket_urlpatterns = [path("ws/studio/", StudioConsumer.as_asgi())]
