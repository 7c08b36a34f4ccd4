"""All addresses of the Studio; `studio.urls` is what a site includes.

Every state of a page has an address; fragments are under _f/ and never linked.

Every view has a guard (`studio.frame.guard`); `guarded_path` rejects views without one.
"""

from django.urls import URLPattern, URLResolver, register_converter

from studio.accounts import passwords, preference_page, session
from studio.api import page as api_page
from studio.api import site as api
from studio.approvals import views as approvals
from studio.audit import views as audit
from studio.bulk import actions as bulk_actions
from studio.bulk import start as bulk_start
from studio.bulk import views as bulk
from studio.charts import views as charts
from studio.errors import actions as error_actions
from studio.errors import notes as error_notes
from studio.errors import views as errors
from studio.frame import addresses, icons, joined
from studio.frame.guard import guarded_path
from studio.health import views as health
from studio.home import views as home
from studio.instance import actions, answer, decide, notes, payload, people, restart
from studio.instance import views as instance
from studio.instances import suggestions
from studio.instances import views as instances
from studio.jump import views as jump
from studio.live import reconcile
from studio.saved_views import views as saved_views
from studio.schedules import views as schedules
from studio.tokens import views as tokens
from studio.tv import views as tv
from studio.webhooks import delivery as webhook_delivery
from studio.webhooks import door as webhook_door
from studio.webhooks import edit as webhook_edit
from studio.webhooks import views as webhooks
from studio.workers import drain as draining
from studio.workers import views as workers
from studio.workflow import views as workflow
from studio.workflows import many, pausing, start
from studio.workflows import views as workflows

register_converter(addresses.WorkflowName, "workflow")
register_converter(addresses.InstanceId, "id")
register_converter(addresses.StepNumber, "step")
register_converter(addresses.Anything, "anything")
register_converter(addresses.HookSlug, "hook")
register_converter(addresses.JobId, "job")
register_converter(addresses.Fingerprint, "fingerprint")
register_converter(addresses.WorkerName, "worker")

_INSTANCE = "workflows/<workflow:name>/instances/<id:id>/"
_ERROR = "errors/<fingerprint:fingerprint>/"
_STEP = f"{_INSTANCE}steps/<step:seq>/"
_BULK = "bulk/<id:id>/"
_WEBHOOK = "webhooks/<step:key>/"

urlpatterns: list[URLPattern | URLResolver] = [
    *api.patterns(
        guarded_path("docs", api_page.docs, "api-docs"),
        guarded_path("docs/", api_page.docs, "api-docs-with-slash"),
    ),
    guarded_path("", home.home, "home"),
    guarded_path("tv/", tv.tv, "tv"),
    guarded_path("jump/", jump.jump, "jump"),
    guarded_path("shortcuts/", jump.shortcuts, "shortcuts"),
    guarded_path("workflows/", workflows.workflows, "workflows"),
    guarded_path("workflows/<workflow:name>/", workflow.workflow, "workflow"),
    guarded_path("workflows/<workflow:name>/start/", start.start, "start"),
    guarded_path("workflows/<workflow:name>/start/many/", many.start_many, "start-many"),
    guarded_path("workflows/<workflow:name>/code/", workflow.code, "workflow-code"),
    # Not below workflows/, where a workflow may have any name.
    guarded_path("pause-workflows/", pausing.pause_workflows, "pause_workflows"),
    guarded_path("resume-workflows/", pausing.resume_workflows, "resume_workflows"),
    guarded_path("errors/", errors.errors, "errors"),
    guarded_path(_ERROR, errors.error, "error"),
    guarded_path(f"{_ERROR}resolve/", error_actions.resolve, "error-resolve"),
    guarded_path(f"{_ERROR}ignore/", error_actions.ignore, "error-ignore"),
    guarded_path(f"{_ERROR}reopen/", error_actions.reopen, "error-reopen"),
    guarded_path(f"{_ERROR}note/", error_notes.add_note, "error-note"),
    guarded_path("approvals/", approvals.approvals, "approvals"),
    guarded_path("instances/", instances.instances, "instances"),
    guarded_path("instances/views/", saved_views.saved_views, "saved-views"),
    guarded_path("instances/views/<slug:slug>/rename/", saved_views.rename, "view-rename"),
    guarded_path("instances/views/<slug:slug>/update/", saved_views.update, "view-update"),
    guarded_path("instances/views/<slug:slug>/move/", saved_views.move, "view-move"),
    guarded_path("instances/views/<slug:slug>/delete/", saved_views.delete, "view-delete"),
    guarded_path("schedules/", schedules.timetable, "schedules"),
    guarded_path("schedules/<step:key>/pause/", schedules.pause, "schedule-pause"),
    guarded_path("schedules/<step:key>/resume/", schedules.resume, "schedule-resume"),
    guarded_path("schedules/<step:key>/run/", schedules.run, "schedule-run"),
    guarded_path("charts/", charts.charts, "charts"),
    guarded_path("charts/export.csv", charts.export, "charts-csv"),
    guarded_path("workers/", workers.workers, "workers"),
    guarded_path("workers/<step:key>/drain/", draining.drain, "worker-drain"),
    guarded_path("workers/<step:key>/resume/", draining.resume, "worker-resume"),
    guarded_path("bulk/", bulk.jobs, "bulk-jobs"),
    guarded_path("bulk/new/", bulk_start.new, "bulk-new"),
    guarded_path(_BULK, bulk.job, "bulk-job"),
    guarded_path(f"{_BULK}pause/", bulk_actions.pause, "bulk-pause"),
    guarded_path(f"{_BULK}resume/", bulk_actions.resume, "bulk-resume"),
    guarded_path(f"{_BULK}abort/", bulk_actions.abort, "bulk-abort"),
    guarded_path(f"{_BULK}retry-failed/", bulk_actions.retry_failed, "bulk-retry-failed"),
    guarded_path("tokens/", tokens.own, "tokens"),
    guarded_path("tokens/team/", tokens.team, "team-tokens"),
    guarded_path("tokens/people/", tokens.people, "people-tokens"),
    guarded_path("tokens/<step:key>/revoke/", tokens.revoke, "token-revoke"),
    guarded_path("webhooks/", webhooks.webhooks, "webhooks"),
    guarded_path("webhooks/new/", webhook_edit.new, "webhook-new"),
    guarded_path(_WEBHOOK, webhooks.webhook, "webhook"),
    guarded_path(f"{_WEBHOOK}edit/", webhook_edit.edit, "webhook-edit"),
    guarded_path(f"{_WEBHOOK}pause/", webhooks.pause, "webhook-pause"),
    guarded_path(f"{_WEBHOOK}resume/", webhooks.resume, "webhook-resume"),
    guarded_path(f"{_WEBHOOK}rotate/", webhooks.rotate, "webhook-rotate"),
    guarded_path(f"{_WEBHOOK}delete/", webhooks.delete, "webhook-delete"),
    guarded_path(f"{_WEBHOOK}test/", webhook_delivery.test, "webhook-test"),
    guarded_path(f"{_WEBHOOK}deliveries/<int:seq>/", webhook_delivery.delivery, "webhook-delivery"),
    guarded_path(f"{_WEBHOOK}deliveries/<int:seq>/again/", webhook_delivery.send_again, "webhook-send-again"),
    guarded_path("_f/webhooks/check/", webhook_edit.check, "webhook-check"),
    guarded_path("hooks/<hook:slug>", webhook_door.receive, "hook"),
    guarded_path("audit/", audit.audit, "audit"),
    guarded_path("audit/export.csv", audit.export, "audit-csv", form="csv"),
    guarded_path("audit/export.json", audit.export, "audit-json", form="json"),
    guarded_path(_INSTANCE, instance.instance, "instance"),
    guarded_path(f"{_INSTANCE}pause/", actions.pause, "pause"),
    guarded_path(f"{_INSTANCE}resume/", actions.resume, "resume"),
    guarded_path(f"{_INSTANCE}terminate/", actions.terminate, "terminate"),
    guarded_path(f"{_INSTANCE}restart/", restart.restart_page, "restart"),
    guarded_path(f"{_INSTANCE}delete/", actions.delete, "delete"),
    guarded_path(f"{_INSTANCE}retry-now/", actions.retry_now, "retry-now"),
    guarded_path(f"{_INSTANCE}wake-now/", actions.wake_now, "wake-now"),
    guarded_path(f"{_STEP}decide/", decide.decide, "decide"),
    guarded_path(f"{_STEP}retry/", decide.retry_step, "retry-step"),
    guarded_path(f"{_STEP}skip/", decide.skip_step, "skip-step"),
    guarded_path(f"{_STEP}fail/", decide.fail_step, "fail-step"),
    guarded_path(f"{_INSTANCE}retry-rollback/", actions.retry_rollback, "retry-rollback"),
    guarded_path(f"{_INSTANCE}accept-code/", actions.accept_code, "accept-code"),
    guarded_path(f"{_INSTANCE}notes/", notes.add_note, "note"),
    guarded_path(f"{_INSTANCE}events/", actions.send_event, "send-event"),
    guarded_path(f"{_INSTANCE}requests/<int:seq>/answer/", answer.answer, "answer"),
    guarded_path(f"{_INSTANCE}payload/<slug:what>/", payload.payload, "payload"),
    guarded_path(f"_f/{_INSTANCE}steps/<step:seq>/", instance.within, "within"),
    guarded_path(f"_f/{_INSTANCE}steps/<step:seq>/pane/", instance.pane, "pane"),
    guarded_path(f"_f/{_INSTANCE}steps/start/pane/", instance.fixed_pane, "pane-start", what="start"),
    guarded_path(f"_f/{_INSTANCE}steps/result/pane/", instance.fixed_pane, "pane-result", what="result"),
    guarded_path("_f/workflows/<workflow:name>/check/", start.check, "start-check"),
    guarded_path("_f/workflows/<workflow:name>/people/", people.people, "people"),
    guarded_path("_f/instances/suggestions/", suggestions.suggestions, "instance-suggestions"),
    guarded_path("_f/instances/paths/", suggestions.paths, "instance-paths"),
    guarded_path("_f/tokens/matches/", tokens.matches, "token-matches"),
    guarded_path("_f/views/counts/", saved_views.view_counts, "view-counts"),
    guarded_path("_f/live/", reconcile.live_frame, "live-frame"),
    guarded_path("_f/icons.svg", icons.icons, "icons"),
    guarded_path("_f/joined/<file>", joined.joined, "joined"),
    guarded_path("ws/", reconcile.socket_address, "socket"),
    guarded_path("healthz", health.healthz, "healthz"),
    guarded_path("readyz", health.readyz, "readyz"),
    guarded_path("sign-in/", passwords.sign_in, "sign-in"),
    guarded_path("sign-out/", session.sign_out, "sign-out"),
    guarded_path("password/", passwords.change_password, "password"),
    guarded_path("preferences/", preference_page.preferences, "preferences"),
    guarded_path("theme/", session.theme, "theme"),
]
