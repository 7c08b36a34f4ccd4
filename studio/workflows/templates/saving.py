"""Save, overwrite and delete templates. Each is in the audit trail."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.utils.crypto import get_random_string
from django.utils.text import slugify

from engine.declare.registry import Workflow
from engine.status.sentences.bidi import isolated
from engine.steer import audit
from studio.access import denied_audit
from studio.access.denied_audit import Subject
from studio.access.permissions import RefusedError, Verb, require
from studio.models import StartTemplate
from studio.workflows.templates import rules
from studio.workflows.templates.queries import may_delete
from studio.workflows.templates.rules import Content, InvalidTemplateError

CREATE, CHANGE, DELETE = "template-create", "template-change", "template-delete"
_SUFFIX = "abcdefghijkmnpqrstuvwxyz23456789"  # without what looks alike
_LONGEST_WORD = 60
# Two people who save at once must not exceed the limit together.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def save(workflow: Workflow[Any, Any], name: str, content: Content, *, by: Any) -> StartTemplate:
    """Save params under a new name. Raises InvalidTemplateError, and RefusedError if `by` may not start it."""
    require(by, Verb.OPERATE, workflow.name)
    name = name.strip()
    rules.check_name(name)
    template = StartTemplate(
        slug=_slug_for(name),
        workflow=workflow.name,
        name=name,
        params=content.text,
        made_by=by,
        changed_by=by,
    )
    with transaction.atomic():
        _check_room(workflow.name)
        _insert(template)
        _note(CREATE, template, by)
    template.refresh_from_db()
    return template


def overwrite(template: StartTemplate, content: Content, *, by: Any) -> None:
    """Save other params in it. Raises RefusedError, or StartTemplate.DoesNotExist if it has been deleted."""
    require(by, Verb.OPERATE, template.workflow)
    rows = StartTemplate.objects.filter(key=template.key)
    with transaction.atomic():
        if not rows.update(params=content.text, changed_by=by, changed_at=Now()):
            raise StartTemplate.DoesNotExist
        _note(CHANGE, template, by)
    template.refresh_from_db()


def delete(template: StartTemplate, *, by: Any) -> None:
    """Delete it. Its address leads to an example from now on. Raises RefusedError."""
    if not may_delete(by, template):
        denied_audit.record(DELETE, Subject(template.workflow, data=_facts(template)), by)
        raise RefusedError(Verb.ADMINISTER, template.workflow)
    with transaction.atomic():
        deleted, _ = StartTemplate.objects.filter(key=template.key).delete()
        if deleted:
            _note(DELETE, template, by)


def _check_room(workflow: str) -> None:
    """Lock the list of a workflow until the transaction ends. Raises InvalidTemplateError if it is full."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [f"studio start templates of {workflow}"])
    found, most = StartTemplate.objects.filter(workflow=workflow).count(), rules.MOST_OF_A_WORKFLOW
    if found >= most:
        said = f"{workflow} has {found} templates, and may have {most}. Delete or overwrite one."
        raise InvalidTemplateError("name", said)


def _insert(template: StartTemplate) -> None:
    try:
        with transaction.atomic():
            template.save(force_insert=True)
    except IntegrityError as error:
        if "studio_starttemplate_name" not in str(error):
            raise
        name = isolated(template.name)
        said = f'{template.workflow} has a template "{name}". Choose another name, or overwrite that one.'
        raise InvalidTemplateError("name", said) from None


def _slug_for(name: str) -> str:
    """Return a slug that no template had before: a link to a deleted one must not fill in another."""
    word = slugify(name)[:_LONGEST_WORD].strip("-_").replace("_", "-") or "template"
    return f"{word}-{get_random_string(8, _SUFFIX)}"


def _note(verb: str, template: StartTemplate, by: Any) -> None:
    audit.note(verb, template.workflow, audit.Cause.of(by), data=_facts(template))


def _facts(template: StartTemplate) -> dict[str, str]:
    return {"template": template.name, "slug": template.slug}
