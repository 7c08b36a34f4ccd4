"""What the search finds by an index: the paths that workflows declare with `search=`, and the values found there."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from engine.models.fields import NumericField
from engine.values.search_paths import MAX_STORED_PATH

MAX_TEXT = 256  # characters of a value that are kept


class IndexedPath(models.Model):
    """A path of the params or output of a workflow's instances whose values are kept in `engine_searchvalue`.

    A worker adds the declared paths when it starts; only `manage.py workflow index` removes one, because the workers of
    a rolling deployment may declare different paths.
    """

    key = models.AutoField(primary_key=True)
    workflow = models.CharField(max_length=64)
    """The name of the workflow."""
    path = models.CharField(max_length=MAX_STORED_PATH)
    """Keys and array positions, joined by dots. The first part is `params` or `output`."""
    is_complete = models.BooleanField(default=False, db_default=False)
    """Whether all instances are indexed. If not, those started or ended before the path was declared may be missing."""
    filled_to = models.BigIntegerField(default=0, db_default=0)
    """The instances up to this key are indexed: from here on `workflow index` continues."""
    is_declared = models.BooleanField(default=True, db_default=True)
    """False while `workflow index` removes the values of a path that the code no longer declares."""

    class Meta:
        db_table = "engine_indexedpath"
        constraints = [
            models.UniqueConstraint(fields=["workflow", "path"], name="engine_indexedpath_path"),
            models.CheckConstraint(
                condition=Q(path__regex=r"^(params|output)(\..+)?$"), name="engine_indexedpath_form"
            ),
            models.CheckConstraint(
                condition=Q(is_declared=True) | Q(is_complete=False), name="engine_indexedpath_removed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow}: {self.path}"


class SearchValue(models.Model):
    """What an instance has at an indexed path, written by triggers on the instances.

    One row for each path at which the instance has anything, so a missing row means that there is nothing. A string, a
    number as it is written in the JSON, `true`, `false` and `null` are stored as their text; a string therefore is not
    distinguished from a number or word of the same text. An object or array has a row without text.
    """

    pk = models.CompositePrimaryKey("instance_id", "path_id")
    instance = models.ForeignKey(
        "engine.Instance",
        on_delete=models.CASCADE,
        related_name="search_values",
        db_constraint=False,
        db_index=False,
    )
    path = models.ForeignKey(
        IndexedPath, on_delete=models.CASCADE, related_name="values", db_constraint=False, db_index=False
    )
    # NULL is not an empty string here.
    text = models.CharField(max_length=MAX_TEXT, null=True, db_collation="C")  # noqa: DJ001
    """The value as text, up to its first 256 characters. NULL for an object or array."""
    number = NumericField(null=True)
    """The value of a JSON number. NULL for everything else."""

    class Meta:
        db_table = "engine_searchvalue"
        indexes = [
            # Equal texts, and texts with a given beginning, newest instance first.
            models.Index(fields=["path", "text", "instance"], name="engine_searchvalue_text"),
            # Numbers in a range.
            models.Index(
                fields=["path", "number", "instance"],
                condition=Q(number__isnull=False),
                name="engine_searchvalue_number",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.path_id} of {self.instance_id}"
