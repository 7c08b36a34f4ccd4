-- A restart from the start may change the params: the generation before keeps its own.

CREATE OR REPLACE TRIGGER engine_instance_is_itself
BEFORE UPDATE OF workflow, id, params, created_at ON engine_instance FOR EACH ROW
WHEN (
    (NEW.workflow, NEW.id, NEW.created_at) IS DISTINCT FROM (OLD.workflow, OLD.id, OLD.created_at)
    OR NEW.generation = OLD.generation AND NEW.params::text IS DISTINCT FROM OLD.params::text
)
EXECUTE FUNCTION engine_refuse('The workflow, id, params and creation time of an instance never change.');

-- So does the index of search paths.
CREATE OR REPLACE FUNCTION engine_index_new_params() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM engine_searchvalue v USING engine_indexedpath p
    WHERE v.instance_id = NEW.key AND p.key = v.path_id AND NOT starts_with(p.path, 'output');
    INSERT INTO engine_searchvalue (instance_id, path_id, text, number)
    SELECT NEW.key, p.key, found.text, found.number
    FROM engine_indexedpath p CROSS JOIN LATERAL engine_search_value(NEW.params, p.path) AS found
    WHERE p.workflow = NEW.workflow AND p.is_declared AND NOT starts_with(p.path, 'output');
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER engine_instance_params_are_indexed AFTER UPDATE OF params ON engine_instance FOR EACH ROW
WHEN (NEW.params::text IS DISTINCT FROM OLD.params::text)
EXECUTE FUNCTION engine_index_new_params();
