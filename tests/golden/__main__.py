"""`python -m tests.golden`: record the histories anew; arguments are given to pytest (`-k refused` records one)."""

import subprocess
import sys
from pathlib import Path

RECORDING = Path(__file__).with_name("recording.py")

sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-q", str(RECORDING), *sys.argv[1:]]))
