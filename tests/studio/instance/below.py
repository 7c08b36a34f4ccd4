"""The Studio below a prefix, as a project includes it."""

from django.urls import include, path

urlpatterns = [path("ops/", include("studio.urls"))]
