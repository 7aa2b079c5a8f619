# SPDX-License-Identifier: Apache-2.0
"""Signatures by SSH keys: who vouches for a certificate.

    CERT/certificate.json.sig     made and checked by `ssh-keygen -Y`

The signature covers the bytes of `certificate.json`: the guarantee, the ledger of labels, the time
of creation, and the hashes of the other files. A seal says that nothing was changed by accident;
anybody can seal anew, but only the owner of a key can sign.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from splatcert.certificate.store import MAIN, SIGNATURE
from splatcert.errors import InputError
from splatcert.storage.whole import ArtefactError, owned_folder, write_text_whole

PROGRAM, NAMESPACE = "ssh-keygen", "splatcert-certificate"
"""A signature that a key made for anything else (a commit, a mail) has a different namespace."""
MAX_BYTES = 1 << 16
GOOD = re.compile(r"^Good .* signature (?:for .* )?with (\S+) key (\S+)$", re.MULTILINE)


class SignatureError(InputError):
    """A certificate that cannot be signed, or a signature that does not hold."""


@dataclass(frozen=True)
class Signer:
    """Whose key signed a certificate."""

    name: str
    """The name that the list of allowed signers gives to the key."""
    key: str
    """Type and fingerprint of the key."""

    def __str__(self) -> str:
        return f"{self.name}, {self.key}"


def is_signed(folder: Path) -> bool:
    """Whether a signature lies beside a certificate; nothing is checked."""
    return os.path.lexists(folder / SIGNATURE)


def sign(folder: Path, key: Path) -> str:
    """Sign a certificate; returns type and fingerprint of the key.

    `key` is a private key, or a public one whose private half an SSH agent holds.
    """
    program = require_ssh_keygen()
    if not key.is_file():
        raise SignatureError(
            f"{key} is not a file.\n"
            "  Pass --key with a private SSH key, or with a .pub file whose key an agent holds."
        )
    with owned_folder(folder, "signing"), _copied(folder / MAIN) as copy:
        command = [program, "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(copy)]
        done = _run(command, asks=sys.stdin is not None and sys.stdin.isatty())
        made = copy.with_name(SIGNATURE)
        if done.returncode or not made.is_file():
            raise _unusable_key(key, done.stderr)
        found = _key_of(program, copy, made)
        write_text_whole(folder / SIGNATURE, made.read_text())
    return found


def require_ssh_keygen() -> str:
    """Path of the program that signs and checks."""
    if (program := shutil.which(PROGRAM)) is None:
        raise SignatureError(
            f"signatures require {PROGRAM}, which is not installed.\n"
            "  Install OpenSSH: on Debian and Ubuntu, apt install openssh-client."
        )
    return program


def require_allowed(allowed: Path) -> Path:
    """The list of allowed signers, which must be a file."""
    if not allowed.is_file():
        raise SignatureError(
            f"{allowed} is not a file of allowed signers.\n"
            "  Write one line per signer: a name, and the signer's public key. For example:\n"
            "  ada@example.com ssh-ed25519 AAAAC3Nza..."
        )
    return allowed


def check_signed_by(folder: Path, allowed: Path) -> Signer:
    """The allowed signer of a certificate; anything but a valid signature is refused."""
    program, signature = require_ssh_keygen(), folder / SIGNATURE
    if not is_signed(folder):
        raise SignatureError(f"there is no {SIGNATURE}: nobody has signed this certificate")
    if signature.is_symlink() or not signature.is_file():
        raise SignatureError(f"{SIGNATURE} is a link or a device, not a file")
    if signature.stat().st_size > MAX_BYTES:
        raise SignatureError(f"{SIGNATURE} has more than {MAX_BYTES} bytes: not a signature")
    key = _key_of(program, folder / MAIN, signature)
    listing = ["-s", str(signature), "-f", str(allowed)]
    found = _run([program, "-Y", "find-principals", *listing])
    for name in found.stdout.splitlines():
        command = [program, "-Y", "verify", *listing, "-I", name, "-n", NAMESPACE]
        if _run(command, read=folder / MAIN).returncode == 0:
            return Signer(name, key)
    faults = re.findall(rf"^{re.escape(str(allowed))}:(\d+): (.+)$", found.stderr, re.MULTILINE)
    unread = "".join(f"; line {line} cannot be read: {why}" for line, why in faults[:1])
    raise SignatureError(
        f"signed with the {key}, which {allowed} does not allow to sign certificates{unread}"
    )


def _key_of(program: str, content: Path, signature: Path) -> str:
    """The key behind a signature that is valid for a file, whoever owns the key."""
    command = [program, "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature)]
    done = _run(command, read=content)
    if done.returncode == 0 and (good := GOOD.search(done.stdout)):
        return f"{good[1]} key {good[2]}"
    said = done.stderr
    if "namespace" in said:
        raise SignatureError(f"{SIGNATURE} was made for another purpose, not for a certificate")
    if "incorrect signature" in said:
        raise SignatureError(
            f"{SIGNATURE} does not belong to this {MAIN}: one of them was changed after signing"
        )
    raise SignatureError(f"{SIGNATURE} is damaged: it is not a signature that {PROGRAM} can read")


def _unusable_key(key: Path, said: str) -> SignatureError:
    """Why a key cannot sign, from what ssh-keygen said."""
    if "too open" in said:
        why = f"other users can read it.\n  Run: chmod 600 {key}"
    elif "passphrase" in said:
        why = (
            "its passphrase is wrong, or there is no terminal to ask for it.\n"
            "  Sign in a terminal; or load the key with ssh-add and pass its .pub file."
        )
    elif "No private key found" in said:
        why = (
            "it is a public key, and no SSH agent holds its private key.\n"
            "  Load the key with ssh-add, or pass the private key."
        )
    elif re.search("Couldn't load|invalid format|libcrypto", said):
        why = "it is not an SSH key.\n  Make one with: ssh-keygen -t ed25519"
    else:
        told = " ".join(said.split())[-160:] or "no reason given"
        why = f"{PROGRAM} refused ({told}).\n  Pass another key with --key."
    return SignatureError(f"{key} cannot sign: {why}")


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """A copy in a private folder: ssh-keygen writes a signature beside what it signs."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        try:
            copy.write_bytes(path.read_bytes())
        except OSError as error:
            raise ArtefactError(
                f"cannot write a copy of {path} to {folder}: {error.strerror}.\n"
                "  Free some space, or set TMPDIR to another folder."
            ) from error
        yield copy


def _run(
    command: list[str], *, read: Path | None = None, asks: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ssh-keygen; only where it may ask for a passphrase does it see the terminal."""
    environment = {**os.environ, "LC_ALL": "C"}
    if not asks:
        environment["SSH_ASKPASS_REQUIRE"] = "never"
    with (read or Path(os.devnull)).open("rb") as file:
        return subprocess.run(
            command,
            stdin=None if asks else file,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=environment,
            start_new_session=not asks,
        )
