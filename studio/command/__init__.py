"""The command `reprise`: what `manage.py` does in a project, for any folder."""
