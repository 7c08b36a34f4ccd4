from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control


def home(request):
    return render(request, "home.html")


@cache_control(public=True, max_age=600)
def public(request):
    return render(request, "home.html")


def workflows(request):
    return HttpResponse("Our own page about workflows")


def greet(request):
    messages.error(request, "A message of the shop")
    return redirect(request.GET.get("next", "home"))
