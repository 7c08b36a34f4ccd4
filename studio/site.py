"""The addresses of a site that is nothing but the Studio: what `make run` and `reprise run` serve."""

from django.urls import include, path

urlpatterns = [path("", include("studio.urls"))]

handler400 = "studio.frame.handlers.bad_request"
handler403 = "studio.frame.errors.permission_denied"
handler404 = "studio.frame.errors.not_found"
handler500 = "studio.frame.errors.server_error"
