-- As in counts.sql, but the first generation's beginning is in the row: a look into the audit trail for each end took a
-- third of the time.
CREATE OR REPLACE FUNCTION engine_count_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz;
BEGIN
    IF NEW.generation <> OLD.generation THEN
        INSERT INTO engine_workflow_count_delta (workflow, at, what, amount)
        VALUES (NEW.workflow, date_trunc('minute', NEW.wake_at, 'UTC'), 'started', 1);
        RETURN NULL;
    END IF;
    IF NEW.generation = 1 THEN
        began := coalesce(NEW.started_at, NEW.created_at);
    ELSE
        began := engine_generation_began(NEW.key, NEW.generation, NEW.started_at, NEW.created_at);
    END IF;
    IF NEW.finished_at IS NOT NULL THEN
        INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
        VALUES (NEW.workflow, date_trunc('minute', NEW.finished_at, 'UTC'), NEW.status,
            engine_duration_bucket(NEW.finished_at - began), 1);
    ELSE
        INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
        VALUES (OLD.workflow, date_trunc('minute', OLD.finished_at, 'UTC'), OLD.status,
            engine_duration_bucket(OLD.finished_at - began), -1);
    END IF;
    RETURN NULL;
END
$$;
