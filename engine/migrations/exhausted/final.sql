-- Rows that must not change, with what people decide when the attempts of a step are used up.
--
-- Every replay must return what the first one returned. The rollback of a finished step comes after its end. The
-- outcome of an atomic step, or of one that a person has skipped or failed, is recorded before its delivery number,
-- which a later checkpoint adds. An inner step that has failed was delivered to a body only: when a person gives new
-- attempts to the step around it, whose body runs again, so does the inner step.
CREATE OR REPLACE TRIGGER engine_step_is_final BEFORE UPDATE ON engine_step FOR EACH ROW
WHEN (
    OLD.status IN ('complete', 'errored', 'cancelled')
    AND (NEW.status, NEW.output::text, NEW.error::text,
        CASE WHEN OLD.delivery IS NOT NULL OR NOT (
            OLD.status = 'complete' OR OLD.status = 'errored' AND OLD.options -> 'decision' IS NOT NULL
        ) THEN NEW.delivery END,
        NEW.kind, NEW.name, NEW.count, NEW.finished_at)
    IS DISTINCT FROM
    (OLD.status, OLD.output::text, OLD.error::text, OLD.delivery, OLD.kind, OLD.name, OLD.count, OLD.finished_at)
    AND NOT (
        OLD.status = 'errored' AND OLD.parent <> 0 AND OLD.delivery IS NULL
        AND NEW.status = 'waiting' AND NEW.delivery IS NULL AND (NEW.options ->> 'retried_after')::integer = OLD.attempts
        AND (NEW.kind, NEW.name, NEW.count) = (OLD.kind, OLD.name, OLD.count)
    )
)
EXECUTE FUNCTION engine_refuse('A finished step never changes.');
