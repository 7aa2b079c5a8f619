# SPDX-License-Identifier: Apache-2.0
"""SSH keys for tests of signatures."""

from __future__ import annotations

import subprocess
from pathlib import Path


def write_key(path: Path, passphrase: str = "") -> Path:
    """A new private key, and its public half beside it with the suffix .pub."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run(command, check=True)
    return path
