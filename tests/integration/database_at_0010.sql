-- The engine's tables as the migrations 0001_initial to 0010_pause_reason made them (pg_dump), before they were squashed.

CREATE FUNCTION engine_keep_pause_reason() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        IF NEW.status = 'paused' THEN
            NEW.pause_reason := (
        SELECT json_object_agg(part.key, part.value ORDER BY part.place)
        FROM json_each(NEW.error) WITH ORDINALITY AS part (key, value, place) WHERE part.key <> 'original'
    );
            NEW.error := NEW.error -> 'original';
        ELSE
            NEW.pause_reason := NULL;
        END IF;
        RETURN NEW;
    END
    $$;

CREATE FUNCTION engine_keep_request() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        IF NEW.status = 'waiting' THEN
            INSERT INTO engine_open_request (instance_id, generation, seq, opened_at, expires_at, assignees)
            VALUES (NEW.instance_id, NEW.generation, NEW.seq, NEW.started_at, NEW.wake_at,
                ARRAY(SELECT json_array_elements_text(NEW.options -> 'assignees')))
            ON CONFLICT (instance_id, generation, seq) DO UPDATE SET expires_at = excluded.expires_at;
        ELSE
            DELETE FROM engine_open_request
            WHERE instance_id = NEW.instance_id AND generation = NEW.generation AND seq = NEW.seq;
            IF NEW.finished_at IS NOT NULL AND NEW.kept_from IS NULL THEN
                INSERT INTO engine_ended_request (instance_id, generation, seq, ended_at)
                VALUES (NEW.instance_id, NEW.generation, NEW.seq, NEW.finished_at)
                ON CONFLICT DO NOTHING;
            END IF;
        END IF;
        RETURN NULL;
    END
    $$;

CREATE FUNCTION engine_note_attempt() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, step, count, attempt,
            phase, worker)
        SELECT 'attempt_lost', NEW.finished_at, i.workflow, i.id, i.key, NEW.generation, coalesce(s.name, ''),
            coalesce(s.count, 1), NEW.number, NEW.phase, NEW.worker
        FROM engine_instance i
        LEFT JOIN engine_step s ON s.instance_id = i.key AND s.generation = NEW.generation AND s.seq = NEW.step_seq
        WHERE i.key = NEW.instance_id;
        PERFORM pg_notify('engine_wake', 'notice');
        RETURN NULL;
    END
    $$;

CREATE FUNCTION engine_note_instance() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    DECLARE
        hidden constant text := coalesce((
            SELECT format('(not shown: step "%s" is sensitive)', s.name) FROM engine_step s
            WHERE s.instance_id = NEW.key AND s.generation = NEW.generation AND s.sensitive
              AND (s.status = 'errored' OR s.rollback IN ('running', 'failed')
                   OR NEW.status = 'paused' AND NEW.pause_reason ->> 'type' <> 'CodeChangedError')
            ORDER BY s.seq LIMIT 1
        ), (
            WITH RECURSIVE heard_of AS (
                SELECT NEW.key AS key
                UNION
                SELECT i.key FROM heard_of h
                JOIN engine_step s ON s.instance_id = h.key AND (h.key <> NEW.key OR s.generation = NEW.generation)
                JOIN engine_instance i ON i.workflow = s.options ->> 'workflow' AND i.id = s.options ->> 'id'
                WHERE s.kind = 'child' AND (
                    s.status = 'errored' AND (s.error -> 'details' -> 'error')::text IS DISTINCT FROM 'null'
                    OR s.options ->> 'operation' = 'wait_for_instance' AND s.output ->> 'error' IS NOT NULL
                )
            )
            SELECT format('(not shown: step "%s" of instance %s/%s is sensitive)', s.name, i.workflow, i.id)
            FROM heard_of h JOIN engine_instance i ON i.key = h.key JOIN engine_step s ON s.instance_id = h.key
            WHERE h.key <> NEW.key AND s.sensitive AND (s.status <> 'complete' OR s.rollback IN ('running', 'failed'))
            ORDER BY i.key, s.generation, s.seq LIMIT 1
        ));
    BEGIN
        IF NEW.status = 'errored' AND OLD.status <> 'errored' AND NOT (
            OLD.rollback = 'running' AND coalesce((
                SELECT a.verb = 'retry_rollback' FROM engine_audit a
                WHERE a.instance_key = NEW.key AND a.verb IN ('retry_rollback', 'restart') AND a.outcome = 'done'
                ORDER BY a.key DESC LIMIT 1
            ), false)
        ) THEN
            INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, step, error_type,
                error_message)
            VALUES ('instance_errored', NEW.finished_at, NEW.workflow, NEW.id, NEW.key, NEW.generation,
                coalesce(NEW.error ->> 'step', ''), coalesce(NEW.error ->> 'type', ''),
                coalesce(hidden, left(NEW.error ->> 'message', 4000), ''));
        END IF;
        IF NEW.rollback = 'failed' AND OLD.rollback <> 'failed' THEN
            INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, step, count,
                error_type, error_message)
            SELECT 'rollback_failed', coalesce(NEW.finished_at, clock_timestamp()), NEW.workflow, NEW.id, NEW.key,
                NEW.generation, coalesce(s.name, ''), coalesce(s.count, 1), coalesce(a.error ->> 'type', ''),
                coalesce(hidden, left(a.error ->> 'message', 4000), '')
            FROM (VALUES (1)) AS always
            LEFT JOIN engine_step s ON s.instance_id = NEW.key AND s.generation = NEW.generation
                AND s.rollback IN ('running', 'failed')
            LEFT JOIN engine_attempt a ON a.instance_id = s.instance_id AND a.generation = s.generation
                AND a.step_seq = s.seq AND a.phase = 'rollback'
            ORDER BY s.rollback = 'failed' DESC, s.seq DESC, a.number DESC LIMIT 1;
        END IF;
        IF NEW.status = 'paused' AND OLD.status <> 'paused' THEN
            INSERT INTO engine_notice (kind, at, workflow, instance_id, instance_key, generation, error_type,
                error_message)
            VALUES ('instance_paused', NEW.paused_at, NEW.workflow, NEW.id, NEW.key, NEW.generation,
                coalesce(NEW.pause_reason ->> 'type', ''), coalesce(hidden, left(NEW.pause_reason ->> 'message', 4000), ''));
        END IF;
        PERFORM pg_notify('engine_wake', 'notice');
        RETURN NULL;
    END
    $$;

CREATE FUNCTION engine_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME;
    END
    $$;

CREATE TABLE django_migrations (
    id bigint NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL
);

ALTER TABLE django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE engine_attempt (
    generation integer NOT NULL,
    step_seq integer NOT NULL,
    phase character varying(8) DEFAULT 'do'::character varying NOT NULL,
    number integer NOT NULL,
    status character varying(9) NOT NULL,
    worker character varying(100) DEFAULT ''::character varying NOT NULL,
    alone boolean DEFAULT false NOT NULL,
    error json,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    instance_id bigint NOT NULL,
    CONSTRAINT engine_attempt_finished CHECK ((((finished_at IS NULL) AND ((status)::text = 'running'::text)) OR ((NOT ((status)::text = 'running'::text)) AND (finished_at IS NOT NULL)))),
    CONSTRAINT engine_attempt_phase CHECK (((phase)::text = ANY ((ARRAY['do'::character varying, 'rollback'::character varying])::text[]))),
    CONSTRAINT engine_attempt_status CHECK (((status)::text = ANY ((ARRAY['running'::character varying, 'complete'::character varying, 'errored'::character varying, 'timed_out'::character varying, 'lost'::character varying, 'cancelled'::character varying])::text[]))),
    CONSTRAINT engine_attempt_times CHECK (((finished_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (finished_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (started_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (started_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE engine_audit (
    key bigint NOT NULL,
    at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    verb character varying(32) NOT NULL,
    actor character varying(150) NOT NULL,
    user_key character varying(64) NOT NULL,
    workflow character varying(64) NOT NULL,
    instance_id character varying(100) NOT NULL,
    instance_key bigint,
    before character varying(20) NOT NULL,
    after character varying(20) NOT NULL,
    outcome character varying(8) NOT NULL,
    reason text NOT NULL,
    data json,
    CONSTRAINT engine_audit_times CHECK (((at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

ALTER TABLE engine_audit ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine_audit_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE engine_ended_request (
    instance_id bigint NOT NULL,
    generation integer NOT NULL,
    seq integer NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    CONSTRAINT engine_ended_request_times CHECK (((ended_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

CREATE TABLE engine_event (
    key bigint NOT NULL,
    type character varying(100) NOT NULL,
    payload json NOT NULL,
    dedup_key character varying(255),
    sent_by character varying(150) DEFAULT ''::character varying NOT NULL,
    received_at timestamp with time zone NOT NULL,
    state character varying(8) DEFAULT 'buffered'::character varying NOT NULL,
    consumed_generation integer,
    consumed_by integer,
    instance_id bigint NOT NULL,
    CONSTRAINT engine_event_state CHECK ((((consumed_by IS NOT NULL) AND (consumed_generation IS NOT NULL) AND ((state)::text = 'consumed'::text)) OR ((consumed_by IS NULL) AND ((state)::text = ANY ((ARRAY['buffered'::character varying, 'dropped'::character varying])::text[]))))),
    CONSTRAINT engine_event_times CHECK (((received_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (received_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

ALTER TABLE engine_event ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine_event_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE engine_generation (
    key bigint NOT NULL,
    number integer NOT NULL,
    status character varying(20) NOT NULL,
    output json,
    error json,
    rollback character varying(8) DEFAULT ''::character varying NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    instance_id bigint NOT NULL,
    code character varying(64) DEFAULT ''::character varying NOT NULL,
    unreached integer[] DEFAULT '{}'::integer[] NOT NULL,
    pause_reason json,
    CONSTRAINT engine_generation_times CHECK (((finished_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (finished_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (started_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (started_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

ALTER TABLE engine_generation ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine_generation_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE engine_instance (
    key bigint NOT NULL,
    workflow character varying(64) NOT NULL,
    id character varying(100) NOT NULL,
    generation integer DEFAULT 1 NOT NULL,
    status character varying(20) NOT NULL,
    waiting_for character varying(8) DEFAULT ''::character varying NOT NULL,
    rollback character varying(8) DEFAULT ''::character varying NOT NULL,
    params json NOT NULL,
    output json,
    error json,
    unreached integer[] DEFAULT '{}'::integer[] NOT NULL,
    tags character varying(100)[] DEFAULT '{}'::character varying(100)[] NOT NULL,
    started_by character varying(150) DEFAULT ''::character varying NOT NULL,
    code character varying(64) DEFAULT ''::character varying NOT NULL,
    wake_at timestamp with time zone,
    deadline_at timestamp with time zone,
    owner integer,
    fence bigint DEFAULT 0 NOT NULL,
    signals bigint DEFAULT 0 NOT NULL,
    isolated boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    started_at timestamp with time zone,
    paused_at timestamp with time zone,
    finished_at timestamp with time zone,
    depth integer DEFAULT 0 NOT NULL,
    ends_as character varying(10) DEFAULT ''::character varying NOT NULL,
    is_tied boolean DEFAULT false NOT NULL,
    owes boolean DEFAULT false NOT NULL,
    parent_generation integer,
    parent_key bigint,
    parent_step integer,
    retention json,
    pause_reason json,
    CONSTRAINT engine_instance_finished_is_still CHECK ((((finished_at IS NOT NULL) AND ((status)::text = ANY ((ARRAY['complete'::character varying, 'errored'::character varying, 'terminated'::character varying])::text[])) AND (wake_at IS NULL)) OR ((NOT ((status)::text = ANY ((ARRAY['complete'::character varying, 'errored'::character varying, 'terminated'::character varying])::text[]))) AND (finished_at IS NULL)))),
    CONSTRAINT engine_instance_id_form CHECK (((id)::text ~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$'::text)),
    CONSTRAINT engine_instance_owner_has_lease CHECK (((owner IS NULL) OR (wake_at IS NOT NULL))),
    CONSTRAINT engine_instance_paused_is_still CHECK (((NOT ((status)::text = 'paused'::text)) OR ((paused_at IS NOT NULL) AND (wake_at IS NULL)))),
    CONSTRAINT engine_instance_rollback CHECK (((rollback)::text = ANY ((ARRAY[''::character varying, 'running'::character varying, 'complete'::character varying, 'failed'::character varying])::text[]))),
    CONSTRAINT engine_instance_running_has_owner CHECK ((((owner IS NOT NULL) AND ((status)::text = ANY ((ARRAY['running'::character varying, 'waiting_for_pause'::character varying])::text[]))) OR ((NOT ((status)::text = ANY ((ARRAY['running'::character varying, 'waiting_for_pause'::character varying])::text[]))) AND (owner IS NULL)))),
    CONSTRAINT engine_instance_sleeper_has_wake_up CHECK (((NOT (((status)::text = 'waiting'::text) AND ((waiting_for)::text = ANY ((ARRAY['sleep'::character varying, 'retry'::character varying])::text[])))) OR (wake_at IS NOT NULL))),
    CONSTRAINT engine_instance_status CHECK (((status)::text = ANY ((ARRAY['queued'::character varying, 'running'::character varying, 'waiting'::character varying, 'waiting_for_pause'::character varying, 'paused'::character varying, 'complete'::character varying, 'errored'::character varying, 'terminated'::character varying])::text[]))),
    CONSTRAINT engine_instance_times CHECK (((created_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (created_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (deadline_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (deadline_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (finished_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (finished_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (paused_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (paused_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (started_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (started_at < '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT engine_instance_waiting_says_for_what CHECK (((((status)::text = 'waiting'::text) AND ((waiting_for)::text = ANY ((ARRAY['sleep'::character varying, 'event'::character varying, 'retry'::character varying, 'child'::character varying])::text[]))) OR ((NOT ((status)::text = 'waiting'::text)) AND ((waiting_for)::text = ''::text)))),
    CONSTRAINT engine_instance_wake_at_readable CHECK (((wake_at IS NULL) OR ((wake_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (wake_at < '9999-12-31 00:00:00+00'::timestamp with time zone))))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');

ALTER TABLE engine_instance ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine_instance_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE engine_log (
    key bigint NOT NULL,
    generation integer NOT NULL,
    "position" integer,
    step_seq integer,
    attempt integer,
    level character varying(8) NOT NULL,
    message text NOT NULL,
    fields json,
    at timestamp with time zone NOT NULL,
    instance_id bigint NOT NULL,
    CONSTRAINT engine_log_times CHECK (((at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

ALTER TABLE engine_log ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine_log_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE engine_notice (
    key bigint NOT NULL,
    kind character varying(20) NOT NULL,
    at timestamp with time zone NOT NULL,
    workflow character varying(64) DEFAULT ''::character varying NOT NULL,
    instance_id character varying(100) DEFAULT ''::character varying NOT NULL,
    instance_key bigint,
    generation integer DEFAULT 0 NOT NULL,
    step text DEFAULT ''::text NOT NULL,
    count integer DEFAULT 1 NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    phase character varying(8) DEFAULT ''::character varying NOT NULL,
    worker character varying(100) DEFAULT ''::character varying NOT NULL,
    error_type text DEFAULT ''::text NOT NULL,
    error_message text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    is_logged boolean DEFAULT false NOT NULL,
    taken_until timestamp with time zone,
    CONSTRAINT engine_notice_kind CHECK (((kind)::text = ANY ((ARRAY['instance_errored'::character varying, 'rollback_failed'::character varying, 'instance_paused'::character varying, 'attempt_lost'::character varying, 'worker_retired'::character varying])::text[]))),
    CONSTRAINT engine_notice_times CHECK (((at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (taken_until >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (taken_until < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

ALTER TABLE engine_notice ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine_notice_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE engine_open_request (
    instance_id bigint NOT NULL,
    generation integer NOT NULL,
    seq integer NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    assignees character varying(200)[] NOT NULL,
    CONSTRAINT engine_open_request_times CHECK (((expires_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (expires_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (opened_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (opened_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

CREATE TABLE engine_schedule (
    key bigint NOT NULL,
    workflow character varying(64) NOT NULL,
    name character varying(100) NOT NULL,
    expression character varying(100) NOT NULL,
    timezone character varying(64) NOT NULL,
    params json,
    is_declared boolean DEFAULT true NOT NULL,
    paused_at timestamp with time zone,
    paused_by character varying(150) DEFAULT ''::character varying NOT NULL,
    next_at timestamp with time zone,
    last_planned_at timestamp with time zone,
    last_instance_key bigint,
    last_missed integer DEFAULT 0 NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT engine_schedule_still CHECK (((next_at IS NULL) OR (is_declared AND (paused_at IS NULL)))),
    CONSTRAINT engine_schedule_times CHECK (((created_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (created_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (last_planned_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (last_planned_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (next_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (next_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (paused_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (paused_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

ALTER TABLE engine_schedule ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine_schedule_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE engine_step (
    generation integer NOT NULL,
    seq integer NOT NULL,
    parent integer DEFAULT 0 NOT NULL,
    kind character varying(8) NOT NULL,
    name character varying(256) NOT NULL,
    count integer NOT NULL,
    status character varying(9) NOT NULL,
    delivery integer,
    options json,
    sensitive boolean DEFAULT false NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    lost integer DEFAULT 0 NOT NULL,
    event_types character varying(100)[],
    wake_at timestamp with time zone,
    wake_is_fixed boolean DEFAULT false NOT NULL,
    output json,
    error json,
    rollback character varying(8) DEFAULT ''::character varying NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    instance_id bigint NOT NULL,
    kept_from integer,
    CONSTRAINT engine_step_finished_once CHECK ((((finished_at IS NOT NULL) AND ((status)::text = ANY ((ARRAY['complete'::character varying, 'errored'::character varying, 'cancelled'::character varying])::text[]))) OR ((NOT ((status)::text = ANY ((ARRAY['complete'::character varying, 'errored'::character varying, 'cancelled'::character varying])::text[]))) AND (delivery IS NULL) AND (finished_at IS NULL)))),
    CONSTRAINT engine_step_kind CHECK (((kind)::text = ANY ((ARRAY['do'::character varying, 'sleep'::character varying, 'event'::character varying, 'request'::character varying, 'child'::character varying, 'parallel'::character varying, 'map'::character varying, 'progress'::character varying])::text[]))),
    CONSTRAINT engine_step_sleeper_has_wake_up CHECK (((NOT (((kind)::text = 'sleep'::text) AND ((status)::text = 'waiting'::text))) OR (wake_at IS NOT NULL))),
    CONSTRAINT engine_step_status CHECK (((status)::text = ANY ((ARRAY['running'::character varying, 'waiting'::character varying, 'complete'::character varying, 'errored'::character varying, 'cancelled'::character varying])::text[]))),
    CONSTRAINT engine_step_times CHECK (((finished_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (finished_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (started_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (started_at < '9999-12-31 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT engine_step_wake_at_readable CHECK (((wake_at IS NULL) OR ((wake_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (wake_at < '9999-12-31 00:00:00+00'::timestamp with time zone))))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE engine_waiter (
    waiter_id bigint NOT NULL,
    generation integer NOT NULL,
    seq integer NOT NULL,
    instance_id bigint NOT NULL,
    told_at timestamp with time zone,
    CONSTRAINT engine_waiter_times CHECK (((told_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (told_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

CREATE TABLE engine_worker (
    key bigint NOT NULL,
    role character varying(8) NOT NULL,
    name character varying(100) NOT NULL,
    seat integer NOT NULL,
    workflows character varying(64)[] NOT NULL,
    slots integer NOT NULL,
    held integer DEFAULT 0 NOT NULL,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    CONSTRAINT engine_worker_times CHECK (((seen_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (seen_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (started_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (started_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
);

ALTER TABLE engine_worker ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME engine_worker_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

INSERT INTO django_migrations VALUES (1, 'engine', '0001_initial', '2026-11-23Z');
INSERT INTO django_migrations VALUES (2, 'engine', '0002_event_buffered', '2026-11-23Z');
INSERT INTO django_migrations VALUES (3, 'engine', '0003_relatives_and_requests', '2026-11-23Z');
INSERT INTO django_migrations VALUES (4, 'engine', '0004_steering', '2026-11-23Z');
INSERT INTO django_migrations VALUES (5, 'engine', '0005_safe_times', '2026-11-23Z');
INSERT INTO django_migrations VALUES (6, 'engine', '0006_attention_and_search', '2026-11-23Z');
INSERT INTO django_migrations VALUES (7, 'engine', '0007_notices', '2026-11-23Z');
INSERT INTO django_migrations VALUES (8, 'engine', '0008_ended_requests', '2026-11-23Z');
INSERT INTO django_migrations VALUES (9, 'engine', '0009_notices_of_others', '2026-11-23Z');
INSERT INTO django_migrations VALUES (10, 'engine', '0010_pause_reason', '2026-11-23Z');

SELECT setval('django_migrations_id_seq', 10, true);

ALTER TABLE ONLY django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY engine_attempt
    ADD CONSTRAINT engine_attempt_pkey PRIMARY KEY (instance_id, generation, step_seq, phase, number);

ALTER TABLE ONLY engine_audit
    ADD CONSTRAINT engine_audit_pkey PRIMARY KEY (key);

ALTER TABLE ONLY engine_ended_request
    ADD CONSTRAINT engine_ended_request_pkey PRIMARY KEY (instance_id, generation, seq);

ALTER TABLE ONLY engine_event
    ADD CONSTRAINT engine_event_pkey PRIMARY KEY (key);

ALTER TABLE ONLY engine_generation
    ADD CONSTRAINT engine_generation_number UNIQUE (instance_id, number);

ALTER TABLE ONLY engine_generation
    ADD CONSTRAINT engine_generation_pkey PRIMARY KEY (key);

ALTER TABLE ONLY engine_instance
    ADD CONSTRAINT engine_instance_id UNIQUE (workflow, id);

ALTER TABLE ONLY engine_instance
    ADD CONSTRAINT engine_instance_pkey PRIMARY KEY (key);

ALTER TABLE ONLY engine_log
    ADD CONSTRAINT engine_log_pkey PRIMARY KEY (key);

ALTER TABLE ONLY engine_notice
    ADD CONSTRAINT engine_notice_pkey PRIMARY KEY (key);

ALTER TABLE ONLY engine_open_request
    ADD CONSTRAINT engine_open_request_pkey PRIMARY KEY (instance_id, generation, seq);

ALTER TABLE ONLY engine_schedule
    ADD CONSTRAINT engine_schedule_name UNIQUE (workflow, name);

ALTER TABLE ONLY engine_schedule
    ADD CONSTRAINT engine_schedule_pkey PRIMARY KEY (key);

ALTER TABLE ONLY engine_step
    ADD CONSTRAINT engine_step_pkey PRIMARY KEY (instance_id, generation, seq);

ALTER TABLE ONLY engine_waiter
    ADD CONSTRAINT engine_waiter_pkey PRIMARY KEY (waiter_id, generation, seq);

ALTER TABLE ONLY engine_worker
    ADD CONSTRAINT engine_worker_pkey PRIMARY KEY (key);

ALTER TABLE ONLY engine_worker
    ADD CONSTRAINT engine_worker_seat_key UNIQUE (seat);

CREATE INDEX engine_audit_deleted ON engine_audit USING btree (workflow, instance_id) WHERE ((verb)::text = 'delete'::text);

CREATE INDEX engine_audit_instance ON engine_audit USING btree (instance_key, key);

CREATE INDEX engine_ended_request_latest ON engine_ended_request USING btree (ended_at DESC);

CREATE INDEX engine_event_buffered ON engine_event USING btree (instance_id, key) WHERE ((state)::text = 'buffered'::text);

CREATE UNIQUE INDEX engine_event_dedup ON engine_event USING btree (instance_id, dedup_key) WHERE (dedup_key IS NOT NULL);

CREATE UNIQUE INDEX engine_event_one_per_wait ON engine_event USING btree (instance_id, consumed_generation, consumed_by) WHERE ((state)::text = 'consumed'::text);

CREATE INDEX engine_event_order ON engine_event USING btree (instance_id, key);

CREATE INDEX engine_generation_instance_id_da21138b ON engine_generation USING btree (instance_id);

CREATE INDEX engine_instance_children ON engine_instance USING btree (parent_key) WHERE (parent_key IS NOT NULL);

CREATE INDEX engine_instance_due ON engine_instance USING btree (workflow, wake_at) WHERE ((owner IS NULL) AND (wake_at IS NOT NULL));

CREATE INDEX engine_instance_failed ON engine_instance USING btree (workflow, finished_at DESC) WHERE ((status)::text = 'errored'::text);

CREATE INDEX engine_instance_id_start ON engine_instance USING btree (lower((id)::text) COLLATE "C");

CREATE INDEX engine_instance_isolated ON engine_instance USING btree (workflow, wake_at) WHERE (isolated AND (owner IS NULL));

CREATE INDEX engine_instance_list ON engine_instance USING btree (workflow, status, key DESC);

CREATE INDEX engine_instance_owes ON engine_instance USING btree (key) WHERE owes;

CREATE INDEX engine_instance_own_retention ON engine_instance USING btree (key) WHERE (retention IS NOT NULL);

CREATE INDEX engine_instance_owned ON engine_instance USING btree (owner) WHERE (owner IS NOT NULL);

CREATE INDEX engine_instance_pause_reason ON engine_instance USING btree (workflow, key DESC) WHERE ((pause_reason IS NOT NULL) AND ((status)::text = 'paused'::text));

CREATE INDEX engine_instance_retrying ON engine_instance USING btree (workflow, key DESC) WHERE (((status)::text = 'waiting'::text) AND ((waiting_for)::text = 'retry'::text));

CREATE INDEX engine_instance_woken ON engine_instance USING btree (workflow, wake_at) WHERE ((owner IS NULL) AND (started_at IS NOT NULL) AND (wake_at IS NOT NULL));

CREATE UNIQUE INDEX engine_log_once ON engine_log USING btree (instance_id, generation, "position") WHERE ("position" IS NOT NULL);

CREATE INDEX engine_log_order ON engine_log USING btree (instance_id, key);

CREATE INDEX engine_waiter_instance ON engine_waiter USING btree (instance_id);

CREATE TRIGGER engine_attempt_is_noted AFTER UPDATE OF status ON engine_attempt FOR EACH ROW WHEN ((((new.status)::text = 'lost'::text) AND ((old.status)::text <> 'lost'::text))) EXECUTE FUNCTION engine_note_attempt();

CREATE TRIGGER engine_audit_is_append_only BEFORE DELETE OR UPDATE ON engine_audit FOR EACH ROW EXECUTE FUNCTION engine_refuse('The audit trail is append-only.');

CREATE TRIGGER engine_audit_is_not_truncated BEFORE TRUNCATE ON engine_audit FOR EACH STATEMENT WHEN ((NOT starts_with((current_database())::text, 'test_'::text))) EXECUTE FUNCTION engine_refuse('The audit trail is append-only.');

CREATE TRIGGER engine_generation_is_final BEFORE UPDATE ON engine_generation FOR EACH ROW EXECUTE FUNCTION engine_refuse('An earlier generation never changes.');

CREATE TRIGGER engine_instance_is_final BEFORE UPDATE OF status, output, error, finished_at ON engine_instance FOR EACH ROW WHEN ((((old.status)::text = ANY ((ARRAY['complete'::character varying, 'errored'::character varying, 'terminated'::character varying])::text[])) AND (new.generation = old.generation) AND (NOT (((old.rollback)::text = 'failed'::text) AND ((new.rollback)::text = 'running'::text))) AND (((((new.status)::text IS DISTINCT FROM (old.status)::text) OR ((new.output)::text IS DISTINCT FROM (old.output)::text)) OR ((new.error)::text IS DISTINCT FROM (old.error)::text)) OR (new.finished_at IS DISTINCT FROM old.finished_at)))) EXECUTE FUNCTION engine_refuse('A finished generation of an instance never changes.');

CREATE TRIGGER engine_instance_is_itself BEFORE UPDATE OF workflow, id, params, created_at ON engine_instance FOR EACH ROW WHEN ((((((new.workflow)::text IS DISTINCT FROM (old.workflow)::text) OR ((new.id)::text IS DISTINCT FROM (old.id)::text)) OR ((new.params)::text IS DISTINCT FROM (old.params)::text)) OR (new.created_at IS DISTINCT FROM old.created_at))) EXECUTE FUNCTION engine_refuse('The workflow, id, params and creation time of an instance never change.');

CREATE TRIGGER engine_instance_is_noted AFTER UPDATE OF status, rollback ON engine_instance FOR EACH ROW WHEN (((((new.status)::text = 'errored'::text) AND ((old.status)::text <> 'errored'::text)) OR (((new.rollback)::text = 'failed'::text) AND ((old.rollback)::text <> 'failed'::text)) OR (((new.status)::text = 'paused'::text) AND ((old.status)::text <> 'paused'::text) AND (new.pause_reason IS NOT NULL)))) EXECUTE FUNCTION engine_note_instance();

CREATE TRIGGER engine_instance_pause_reason BEFORE UPDATE OF status ON engine_instance FOR EACH ROW WHEN (((((new.status)::text = 'paused'::text) AND ((old.status)::text <> 'paused'::text) AND (new.pause_reason IS NULL) AND (new.error IS NOT NULL) AND ((new.error)::text IS DISTINCT FROM (old.error)::text) AND (((new.error -> 'original'::text) IS NOT NULL) OR (((new.ends_as)::text <> 'errored'::text) AND ((new.error ->> 'type'::text) = ANY (ARRAY['CodeChangedError'::text, 'NonDeterminismError'::text, 'GivenUpError'::text, 'SecretKeyError'::text]))))) OR ((old.pause_reason IS NOT NULL) AND (new.pause_reason IS NOT NULL) AND ((new.status)::text <> ALL ((ARRAY['paused'::character varying, 'complete'::character varying, 'errored'::character varying, 'terminated'::character varying])::text[]))))) EXECUTE FUNCTION engine_keep_pause_reason();

CREATE TRIGGER engine_step_is_final BEFORE UPDATE ON engine_step FOR EACH ROW WHEN ((((old.status)::text = ANY ((ARRAY['complete'::character varying, 'errored'::character varying, 'cancelled'::character varying])::text[])) AND (((((((((new.status)::text IS DISTINCT FROM (old.status)::text) OR ((new.output)::text IS DISTINCT FROM (old.output)::text)) OR ((new.error)::text IS DISTINCT FROM (old.error)::text)) OR (
        CASE
            WHEN (((old.status)::text <> 'complete'::text) OR (old.delivery IS NOT NULL)) THEN new.delivery
            ELSE NULL::integer
        END IS DISTINCT FROM old.delivery)) OR ((new.kind)::text IS DISTINCT FROM (old.kind)::text)) OR ((new.name)::text IS DISTINCT FROM (old.name)::text)) OR (new.count IS DISTINCT FROM old.count)) OR (new.finished_at IS DISTINCT FROM old.finished_at)))) EXECUTE FUNCTION engine_refuse('A finished step never changes.');

CREATE TRIGGER engine_step_keeps_request AFTER INSERT OR UPDATE ON engine_step FOR EACH ROW WHEN (((new.kind)::text = 'request'::text)) EXECUTE FUNCTION engine_keep_request();

ALTER TABLE ONLY engine_generation
    ADD CONSTRAINT engine_generation_instance_id_da21138b_fk_engine_instance_key FOREIGN KEY (instance_id) REFERENCES engine_instance(key) DEFERRABLE INITIALLY DEFERRED;

-- Rows of every status, as workers and people leave them.

INSERT INTO engine_instance (key, workflow, id, generation, status, waiting_for, rollback, params, output, error,
    pause_reason, tags, code, wake_at, owner, fence, signals, isolated, parent_key, parent_generation, parent_step,
    is_tied, depth, owes, ends_as, retention, created_at, started_at, paused_at, finished_at)
VALUES
    (1, 'w', 'queued', 1, 'queued', '', '', '{"b": 1, "a": 1e16}', NULL, NULL, NULL, '{red}', 'c', '2026-11-01 12:00Z',
        NULL, 0, 0, false, NULL, NULL, NULL, false, 0, false, '', '{"complete": 60}', '2026-11-01Z', NULL, NULL, NULL),
    (2, 'w', 'running', 1, 'running', '', '', '{}', NULL, NULL, NULL, '{}', 'c', '2026-11-01 12:00Z',
        7, 3, 2, true, NULL, NULL, NULL, false, 0, false, '', NULL, '2026-11-01Z', '2026-11-01Z', NULL, NULL),
    (3, 'w', 'sleeping', 1, 'waiting', 'sleep', '', '{}', NULL, NULL, NULL, '{}', 'c', '2026-12-01Z',
        NULL, 1, 0, false, NULL, NULL, NULL, false, 0, false, '', NULL, '2026-11-01Z', '2026-11-01Z', NULL, NULL),
    (4, 'w', 'asking', 1, 'waiting', 'event', '', '{}', NULL, NULL, NULL, '{}', 'c', NULL,
        NULL, 1, 0, false, NULL, NULL, NULL, false, 0, false, '', NULL, '2026-11-01Z', '2026-11-01Z', NULL, NULL),
    (5, 'w', 'retrying', 1, 'waiting', 'retry', '', '{}', NULL, NULL, NULL, '{}', 'c', '2026-11-01 13:00Z',
        NULL, 1, 0, false, NULL, NULL, NULL, false, 0, false, '', NULL, '2026-11-01Z', '2026-11-01Z', NULL, NULL),
    (6, 'w', 'parent', 1, 'waiting', 'child', '', '{}', NULL, NULL, NULL, '{}', 'c', NULL,
        NULL, 1, 0, false, NULL, NULL, NULL, false, 0, false, '', NULL, '2026-11-01Z', '2026-11-01Z', NULL, NULL),
    (7, 'w', 'pausing', 1, 'waiting_for_pause', '', '', '{}', NULL, NULL, NULL, '{}', 'c', '2026-11-01 12:00Z',
        7, 2, 1, false, NULL, NULL, NULL, false, 0, false, '', NULL, '2026-11-01Z', '2026-11-01Z', NULL, NULL),
    (8, 'w', 'paused', 1, 'paused', '', '', '{}', NULL, NULL, NULL, '{}', 'c', NULL,
        NULL, 1, 1, false, NULL, NULL, NULL, false, 0, false, '', NULL, '2026-11-01Z', '2026-11-01Z', '2026-11-02Z', NULL),
    (9, 'w', 'stopped', 1, 'paused', '', 'running', '{}', NULL, '{"type": "LookupError", "message": "no"}',
        '{"type": "NonDeterminismError", "message": "other"}', '{}', 'c', NULL,
        NULL, 1, 1, false, NULL, NULL, NULL, false, 0, false, 'errored', NULL, '2026-11-01Z', '2026-11-01Z',
        '2026-11-02Z', NULL),
    (10, 'w', 'complete', 2, 'complete', '', '', '{}', 'null', NULL, NULL, '{}', 'c', NULL,
        NULL, 4, 2, false, NULL, NULL, NULL, false, 0, true, '', NULL, '2026-11-01Z', '2026-11-01Z', NULL, '2026-11-03Z'),
    (11, 'w', 'errored', 1, 'errored', '', 'failed', '{}', NULL, '{"type": "LookupError", "message": "no"}', NULL,
        '{}', 'c', NULL, NULL, 1, 0, false, NULL, NULL, NULL, false, 0, false, '', NULL, '2026-11-01Z', '2026-11-01Z',
        NULL, '2026-11-03Z'),
    (12, 'w', 'terminated', 1, 'terminated', '', '', '{}', NULL, NULL, '{"type": "CodeChangedError", "message": ""}',
        '{}', 'c', NULL, NULL, 1, 0, false, NULL, NULL, NULL, false, 0, true, '', NULL, '2026-11-01Z', '2026-11-01Z',
        NULL, '2026-11-03Z'),
    (13, 'w', 'child', 1, 'queued', '', '', '{}', NULL, NULL, NULL, '{}', 'c', '2026-11-01 12:00Z',
        NULL, 0, 0, true, 6, 1, 1, true, 1, false, '', NULL, '2026-11-01Z', NULL, NULL, NULL);

INSERT INTO engine_generation (key, instance_id, number, status, error, pause_reason, started_at, finished_at)
VALUES (1, 10, 1, 'errored', '{"type": "LookupError", "message": "no"}', NULL, '2026-11-01Z', '2026-11-02Z');

INSERT INTO engine_step (instance_id, generation, seq, kind, name, count, status, delivery, options, attempts, lost,
    event_types, wake_at, output, error, rollback, kept_from, started_at, finished_at)
VALUES
    (2, 1, 1, 'do', 'charge', 1, 'running', NULL, NULL, 2, 1, NULL, NULL, NULL, NULL, '', NULL, '2026-11-01Z', NULL),
    (3, 1, 1, 'sleep', 'nap', 1, 'waiting', NULL, NULL, 0, 0, NULL, '2026-12-01Z', NULL, NULL, '', NULL, '2026-11-01Z', NULL),
    (4, 1, 1, 'request', 'approve', 1, 'waiting', NULL, '{"assignees": ["ana", "group:ops"]}', 0, 0, '{answer}',
        '2026-12-01Z', NULL, NULL, '', NULL, '2026-11-01Z', NULL),
    (4, 1, 2, 'request', 'confirm', 1, 'complete', 1, '{"assignees": []}', 0, 0, '{answer}', NULL, 'true', NULL, '',
        NULL, '2026-11-01Z', '2026-11-02Z'),
    (5, 1, 1, 'do', 'charge', 1, 'waiting', NULL, '{"rollback": "refund"}', 1, 0, NULL, '2026-11-01 13:00Z', NULL, NULL,
        '', NULL, '2026-11-01Z', NULL),
    (6, 1, 1, 'child', 'pack', 1, 'waiting', NULL, '{"workflow": "w", "id": "child"}', 0, 0, NULL, NULL, NULL, NULL, '',
        NULL, '2026-11-01Z', NULL),
    (10, 2, 1, 'do', 'charge', 1, 'complete', 1, NULL, 1, 0, NULL, NULL, '1e16', NULL, '', 1, '2026-11-01Z', '2026-11-02Z'),
    (11, 1, 1, 'do', 'charge', 1, 'errored', 1, NULL, 1, 0, NULL, NULL, NULL, '{"type": "LookupError"}', 'failed', NULL,
        '2026-11-01Z', '2026-11-02Z'),
    (12, 1, 1, 'event', 'packed', 1, 'cancelled', NULL, NULL, 0, 0, '{packed}', NULL, NULL, NULL, '', NULL,
        '2026-11-01Z', '2026-11-02Z');

INSERT INTO engine_attempt (instance_id, generation, step_seq, phase, number, status, worker, alone, error, started_at,
    finished_at)
VALUES
    (2, 1, 1, 'do', 1, 'lost', 'host:1', true, NULL, '2026-11-01Z', '2026-11-02Z'),
    (2, 1, 1, 'do', 2, 'running', 'host:2', true, NULL, '2026-11-01Z', NULL),
    (5, 1, 1, 'do', 1, 'timed_out', 'host:2', false, '{"type": "StepTimeoutError"}', '2026-11-01Z', '2026-11-02Z'),
    (10, 1, 1, 'do', 1, 'complete', 'host:2', false, NULL, '2026-11-01Z', '2026-11-02Z'),
    (11, 1, 1, 'do', 1, 'errored', 'host:2', false, '{"type": "LookupError"}', '2026-11-01Z', '2026-11-02Z'),
    (11, 1, 1, 'rollback', 1, 'cancelled', 'host:2', false, NULL, '2026-11-01Z', '2026-11-02Z');

INSERT INTO engine_event (key, instance_id, type, payload, dedup_key, sent_by, received_at, state, consumed_generation,
    consumed_by)
VALUES
    (1, 4, 'answer', '{"approved": true}', 'one', 'ana', '2026-11-01Z', 'consumed', 1, 2),
    (2, 8, 'packed', '"M"', NULL, '', '2026-11-01Z', 'buffered', NULL, NULL),
    (3, 12, 'packed', '-0.0', NULL, '', '2026-11-01Z', 'dropped', NULL, NULL);

INSERT INTO engine_log (key, instance_id, generation, position, step_seq, attempt, level, message, fields, at)
VALUES (1, 2, 1, 1, NULL, NULL, 'info', 'begun', '{"a": 1}', '2026-11-01Z'),
    (2, 2, 1, NULL, 1, 1, 'error', 'lost', NULL, '2026-11-01Z');

INSERT INTO engine_waiter (waiter_id, generation, seq, instance_id, told_at) VALUES (8, 1, 1, 10, '2026-11-03Z');

INSERT INTO engine_notice (key, kind, at, workflow, instance_id, instance_key, generation)
VALUES (1, 'instance_errored', '2026-11-03Z', 'w', 'errored', 11, 1);

INSERT INTO engine_audit (key, at, verb, actor, user_key, workflow, instance_id, instance_key, before, after, outcome,
    reason)
VALUES (1, '2026-11-02Z', 'pause', 'ana', '1', 'w', 'paused', 8, 'waiting', 'paused', 'done', 'lunch');

INSERT INTO engine_schedule (key, workflow, name, expression, timezone, next_at, created_at)
VALUES (1, 'w', 'nightly', '0 3 * * *', 'UTC', '2026-11-02 03:00Z', '2026-11-01Z');

INSERT INTO engine_worker (key, role, name, seat, workflows, slots, held, started_at, seen_at)
VALUES (1, 'cluster', 'host:1', -5, '{w}', 128, 0, '2026-11-01Z', '2026-11-01Z'),
    (2, 'shift', 'host:2', 7, '{w}', 64, 2, '2026-11-01Z', '2026-11-01Z');

SELECT setval(pg_get_serial_sequence(name, 'key'), 100)
FROM unnest(ARRAY['engine_instance', 'engine_generation', 'engine_event', 'engine_log', 'engine_notice', 'engine_audit',
    'engine_schedule', 'engine_worker']) AS name;
