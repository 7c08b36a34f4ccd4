import pytest
from engine.registry import workflow


@pytest.mark.django_db
def test_x():
    from engine.models import Instance

    assert Instance.objects.count() == 0
