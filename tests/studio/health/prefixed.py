"""The Studio below a prefix."""

from django.urls import include, path

urlpatterns = [path("ops/", include("studio.urls"))]
