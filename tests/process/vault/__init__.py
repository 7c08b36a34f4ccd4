"""An app whose workflows get secrets by every way there is."""
