-- Rows that must not change: the database refuses it to every client.

CREATE OR REPLACE FUNCTION engine_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME;
END
$$;

-- Every replay must return what the first one returned. The rollback of a finished step comes after its end. The
-- outcome of an atomic step is recorded before its delivery number, which a later checkpoint adds.
CREATE OR REPLACE TRIGGER engine_step_is_final BEFORE UPDATE ON engine_step FOR EACH ROW
WHEN (
    OLD.status IN ('complete', 'errored', 'cancelled')
    AND (NEW.status, NEW.output::text, NEW.error::text,
        CASE WHEN OLD.status <> 'complete' OR OLD.delivery IS NOT NULL THEN NEW.delivery END,
        NEW.kind, NEW.name, NEW.count, NEW.finished_at)
    IS DISTINCT FROM
    (OLD.status, OLD.output::text, OLD.error::text, OLD.delivery, OLD.kind, OLD.name, OLD.count, OLD.finished_at)
)
EXECUTE FUNCTION engine_refuse('A finished step never changes.');

-- `UPDATE OF`, so that the values, up to 1 MiB, are compared only by statements that name them: no heartbeat does.
-- An instance whose rollback has failed may be rolled back again.
CREATE OR REPLACE TRIGGER engine_instance_is_final
BEFORE UPDATE OF status, output, error, finished_at ON engine_instance FOR EACH ROW
WHEN (
    OLD.status IN ('complete', 'errored', 'terminated') AND NEW.generation = OLD.generation
    AND NOT (OLD.rollback = 'failed' AND NEW.rollback = 'running')
    AND (NEW.status, NEW.output::text, NEW.error::text, NEW.finished_at)
    IS DISTINCT FROM (OLD.status, OLD.output::text, OLD.error::text, OLD.finished_at)
)
EXECUTE FUNCTION engine_refuse('A finished generation of an instance never changes.');

CREATE OR REPLACE TRIGGER engine_instance_is_itself
BEFORE UPDATE OF workflow, id, params, created_at ON engine_instance FOR EACH ROW
WHEN (
    (NEW.workflow, NEW.id, NEW.params::text, NEW.created_at)
    IS DISTINCT FROM (OLD.workflow, OLD.id, OLD.params::text, OLD.created_at)
)
EXECUTE FUNCTION engine_refuse('The workflow, id, params and creation time of an instance never change.');

CREATE OR REPLACE TRIGGER engine_generation_is_final BEFORE UPDATE ON engine_generation FOR EACH ROW
EXECUTE FUNCTION engine_refuse('An earlier generation never changes.');

CREATE OR REPLACE TRIGGER engine_audit_is_append_only BEFORE UPDATE OR DELETE ON engine_audit FOR EACH ROW
EXECUTE FUNCTION engine_refuse('The audit trail is append-only.');

-- Except in test databases, which Django empties with TRUNCATE.
CREATE OR REPLACE TRIGGER engine_audit_is_not_truncated BEFORE TRUNCATE ON engine_audit FOR EACH STATEMENT
WHEN (NOT starts_with(current_database(), 'test_'))
EXECUTE FUNCTION engine_refuse('The audit trail is append-only.');
