"""`python -m tests.studio.api`: ask every operation and write its example and the document of the API anew."""

import subprocess
import sys
from pathlib import Path

RECORDING = Path(__file__).with_name("recording.py")

sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-q", str(RECORDING), *sys.argv[1:]]))
