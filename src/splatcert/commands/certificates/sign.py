# SPDX-License-Identifier: Apache-2.0
"""`splatcert sign`: vouch for a certificate with an SSH key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from splatcert.console import say


@dataclass(frozen=True, kw_only=True)
class Sign:
    """Sign a certificate with an SSH key, so that others can check who vouches for it.

    The signature covers certificate.json as stored, with its ledger and the hashes of its other
    files. Requires ssh-keygen. Check it with splatcert verify CERT --signed-by ALLOWED.
    """

    certificate: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CERT")]
    """Folder written by splatcert certify."""
    key: Annotated[Path, tyro.conf.arg(metavar="KEY")]
    """Private SSH key, such as ~/.ssh/id_ed25519, or a .pub file whose key an SSH agent holds."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        """Check the certificate, sign it, and say with which key."""
        from splatcert.certificate.signature import SignatureError, sign
        from splatcert.certificate.store import SIGNATURE, folder_of
        from splatcert.verification.offline import verify_folder

        folder = folder_of(self.certificate)
        if failures := verify_folder(folder).failures:
            names = ", ".join(check.name for check in failures)
            raise SignatureError(
                f"{folder} was not signed, because it is not valid ({names}).\n"
                f"  Run splatcert verify {folder} for details. Certify again, or restore it."
            )
        key = sign(folder, self.key.expanduser())
        if self.json:
            facts = {"kind": "signature", "path": str(folder / SIGNATURE), "key": key}
            print(json.dumps(facts, indent=2))
            return
        say("Signed", str(folder))
        say("Key", key)
        say("Signature", str(folder / SIGNATURE))
        say("Check", f"splatcert verify {folder} --signed-by ALLOWED")
