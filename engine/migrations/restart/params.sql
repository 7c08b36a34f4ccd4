-- A restart from the start may change the params: the generation before keeps its own.

CREATE OR REPLACE TRIGGER engine_instance_is_itself
BEFORE UPDATE OF workflow, id, params, created_at ON engine_instance FOR EACH ROW
WHEN (
    (NEW.workflow, NEW.id, NEW.created_at) IS DISTINCT FROM (OLD.workflow, OLD.id, OLD.created_at)
    OR NEW.generation = OLD.generation AND NEW.params::text IS DISTINCT FROM OLD.params::text
)
EXECUTE FUNCTION engine_refuse('The workflow, id, params and creation time of an instance never change.');
