"""Every address of the Studio. A state of the screen is an address; fragments live under /_f/ and are never linked."""

from django.urls import URLPattern, URLResolver, path, register_converter

from studio import converters
from studio.views import (
    actions,
    audit,
    fragments,
    home,
    inner,
    instance,
    instances,
    payload,
    requests,
    restart,
    schedules,
    session,
    start,
    workflows,
)

register_converter(converters.WorkflowName, "workflow")
register_converter(converters.InstanceId, "id")
register_converter(converters.StepNumber, "step")

_INSTANCE = "workflows/<workflow:name>/instances/<id:id>/"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("workflows/", workflows.workflows, name="workflows"),
    path("workflows/<workflow:name>/", workflows.workflow, name="workflow"),
    path("workflows/<workflow:name>/start/", start.start, name="start"),
    path("approvals/", requests.approvals, name="approvals"),
    path("instances/", instances.instances, name="instances"),
    path("schedules/", schedules.timetable, name="schedules"),
    path("schedules/<step:key>/pause/", schedules.pause, name="schedule-pause"),
    path("schedules/<step:key>/resume/", schedules.resume, name="schedule-resume"),
    path("schedules/<step:key>/run/", schedules.run, name="schedule-run"),
    path("audit/", audit.audit, name="audit"),
    path("audit/export.csv", audit.export, {"form": "csv"}, name="audit-csv"),
    path("audit/export.json", audit.export, {"form": "json"}, name="audit-json"),
    path(_INSTANCE, instance.instance, name="instance"),
    path(f"{_INSTANCE}pause/", actions.pause, name="pause"),
    path(f"{_INSTANCE}resume/", actions.resume, name="resume"),
    path(f"{_INSTANCE}terminate/", actions.terminate, name="terminate"),
    path(f"{_INSTANCE}restart/", restart.restart_page, name="restart"),
    path(f"{_INSTANCE}delete/", actions.delete, name="delete"),
    path(f"{_INSTANCE}retry-rollback/", actions.retry_rollback, name="retry-rollback"),
    path(f"{_INSTANCE}accept-code/", actions.accept_code, name="accept-code"),
    path(f"{_INSTANCE}events/", actions.send_event, name="send-event"),
    path(f"{_INSTANCE}requests/<int:seq>/answer/", requests.answer, name="answer"),
    path(f"{_INSTANCE}payload/<slug:what>/", payload.payload, name="payload"),
    path(f"_f/{_INSTANCE}steps/<step:seq>/", inner.within, name="within"),
    path("_f/workflows/<workflow:name>/check/", start.check, name="start-check"),
    path("_f/live/", fragments.live_frame, name="live-frame"),
    path("sign-in/", session.SignIn.as_view(), name="sign-in"),
    path("sign-out/", session.sign_out, name="sign-out"),
    path("theme/", session.theme, name="theme"),
]

handler400 = "studio.views.errors.bad_request"
handler403 = "studio.views.errors.permission_denied"
handler404 = "studio.views.errors.not_found"
handler500 = "studio.views.errors.server_error"
