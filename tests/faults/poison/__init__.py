"""An app whose workflow no worker should have to run."""
