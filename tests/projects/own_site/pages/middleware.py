class StampMiddleware:
    """Leaves a mark on every answer, as a site's own middleware does."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        response.headers["X-Stamp"] = "shop"
        return response
