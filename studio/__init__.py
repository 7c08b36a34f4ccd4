"""The web application: watch and control the workflows that `engine` runs."""

import sys

try:
    import engine as engine
except ImportError as error:
    if sys.platform != "win32":
        raise
    # Every command begins here: one line, no traceback.
    sys.exit(str(error))
