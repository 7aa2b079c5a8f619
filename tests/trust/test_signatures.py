# SPDX-License-Identifier: Apache-2.0
"""A signature holds for one certificate and one list of signers, and for nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from resealed import changed
from valid_files import write_valid_files

from splatcert.certificate.store import SIGNATURE
from splatcert.cli import main
from ssh_keys import write_key

pytestmark = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None,
    reason="ssh-keygen is not installed: apt install openssh-client",
)
ADA = "ada@example.com"


def public(key: Path) -> str:
    return key.with_suffix(".pub").read_text().strip()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_valid_files(tmp_path_factory.mktemp("signed") / "valid")
    keys = root / "keys"
    keys.mkdir()
    write_key(keys / "ada")
    write_key(keys / "eve")
    write_key(keys / "locked", "a passphrase")
    (keys / "allowed").write_text(f"{ADA} {public(keys / 'ada')}\n")
    return root


@pytest.fixture
def keys(made) -> Path:
    return made / "keys"


@pytest.fixture
def cert(made, tmp_path) -> Path:
    return shutil.copytree(made / "cert", tmp_path / "cert")


@pytest.fixture
def signed(cert, keys, capsys) -> Path:
    assert main(["sign", str(cert), "--key", str(keys / "ada")]) == 0
    capsys.readouterr()
    return cert


def verify(cert: Path, allowed: Path) -> int:
    return main(["verify", str(cert), "--verbose", "--signed-by", str(allowed)])


def test_a_signed_certificate_names_its_signer(signed, keys, capsys):
    assert verify(signed, keys / "allowed") == 0
    said = capsys.readouterr().out
    assert f"valid, by {ADA}, ED25519 key SHA256:" in " ".join(said.split())


def test_anybody_can_check_a_signature_without_splatcert(signed, keys):
    command = ["ssh-keygen", "-Y", "verify", "-f", str(keys / "allowed"), "-I", ADA]
    command += ["-n", "splatcert-certificate", "-s", str(signed / SIGNATURE)]
    with (signed / "certificate.json").open("rb") as content:
        assert subprocess.run(command, stdin=content, check=False).returncode == 0


def test_verify_says_whether_a_signature_was_checked(cert, keys, capsys):
    assert main(["verify", str(cert)]) == 0
    assert "nobody has signed" in capsys.readouterr().out
    assert main(["sign", str(cert), "--key", str(keys / "ada"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key"].startswith("ED25519 key SHA256:")
    assert main(["verify", str(cert)]) == 0
    assert "not checked" in capsys.readouterr().out
    assert main(["verify", str(cert), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["signed"] is True


def test_the_report_says_that_a_signature_was_not_checked(cert, keys, tmp_path):
    page = tmp_path / "report.html"
    command = ["report", str(cert), "--alone", "-o", str(page)]
    assert main(command) == 0
    assert "the certificate does not prove who made it" in page.read_text()
    assert main(["sign", str(cert), "--key", str(keys / "ada")]) == 0
    assert main(command) == 0
    assert f"{SIGNATURE} is present but was not checked" in page.read_text()


def refused(cert: Path, allowed: Path, capsys, *words: str) -> None:
    assert verify(cert, allowed) == 2
    seen = capsys.readouterr()
    said = " ".join(seen.out.split())
    assert all(word in said for word in words), seen
    assert "is not valid" in seen.err and "Traceback" not in seen.err
    assert len(seen.err.splitlines()) <= 5


def test_nobody_has_signed(cert, keys, capsys):
    refused(cert, keys / "allowed", capsys, "nobody has signed this certificate")


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(created="2001-01-01T00:00:00+00:00"),
        lambda content: content["labels"].update(ledger=[]),
        lambda content: content["scene"].update(name="another"),
    ],
    ids=["time", "ledger", "name"],
)
def test_a_resealed_certificate_loses_its_signature(signed, keys, capsys, change):
    changed(change)(signed)
    refused(signed, keys / "allowed", capsys, "changed after signing")


def test_a_file_named_by_the_certificate_cannot_be_exchanged(signed, keys, capsys):
    path = signed / "views.npz"
    path.write_bytes(path.read_bytes() + b" ")
    refused(signed, keys / "allowed", capsys, "views.npz is not the file that was certified")


def test_an_unknown_signer_is_refused_and_the_key_named(cert, keys, capsys):
    assert main(["sign", str(cert), "--key", str(keys / "eve")]) == 0
    refused(cert, keys / "allowed", capsys, "signed with the ED25519 key", "does not allow")


def test_a_signer_whose_time_is_over_is_refused(signed, keys, tmp_path, capsys):
    allowed = tmp_path / "allowed"
    allowed.write_text(f'{ADA} valid-before="20200101" {public(keys / "ada")}\n')
    refused(signed, allowed, capsys, "does not allow")


def test_a_signer_for_other_purposes_is_refused(signed, keys, tmp_path, capsys):
    allowed = tmp_path / "allowed"
    allowed.write_text(f'{ADA} namespaces="git" {public(keys / "ada")}\n')
    refused(signed, allowed, capsys, "does not allow")


def test_a_list_that_cannot_be_read_is_named(signed, tmp_path, capsys):
    allowed = tmp_path / "allowed"
    allowed.write_text("ada\n")
    refused(signed, allowed, capsys, "line 1 cannot be read")


def test_a_signature_for_something_else_is_refused(cert, keys, capsys):
    command = ["ssh-keygen", "-Y", "sign", "-f", str(keys / "ada"), "-n", "git"]
    subprocess.run([*command, str(cert / "certificate.json")], check=True, capture_output=True)
    refused(cert, keys / "allowed", capsys, "made for another purpose")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:60]), "is damaged"),
        (lambda path: path.write_bytes(b"\xff\0" * 9), "is damaged"),
        (lambda path: path.write_bytes(b"x" * (1 << 17)), "not a signature"),
        (lambda path: (path.unlink(), path.symlink_to("/dev/zero")), "is a link"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "is a link or a device"),
        (lambda path: (path.unlink(), path.symlink_to("nowhere")), "is a link"),
    ],
    ids=["cut", "noise", "large", "device", "pipe", "dangling"],
)
def test_what_is_not_a_signature_is_refused(signed, keys, capsys, spoil, words):
    spoil(signed / SIGNATURE)
    refused(signed, keys / "allowed", capsys, words)


def cannot_sign(cert: Path, key: Path, capsys, *words: str) -> None:
    assert main(["sign", str(cert), "--key", str(key)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("splatcert: ") and len(said.splitlines()) <= 5, said
    assert all(word in said for word in words), said
    assert not os.path.lexists(cert / SIGNATURE)


def test_a_key_that_cannot_sign_says_why(cert, keys, made, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    cannot_sign(cert, tmp_path / "nothing", capsys, "is not a file")
    cannot_sign(cert, made / "cameras.json", capsys, "it is not an SSH key")
    cannot_sign(cert, keys / "locked", capsys, "passphrase", "ssh-add")
    alone = Path(shutil.copy(keys / "eve.pub", tmp_path / "alone.pub"))
    cannot_sign(cert, alone, capsys, "no SSH agent holds its private key")
    open_key = Path(shutil.copy(keys / "eve", tmp_path / "open"))
    open_key.chmod(0o644)
    cannot_sign(cert, open_key, capsys, "other users can read it", "chmod 600")


def test_an_agent_signs_for_a_public_key(cert, keys, tmp_path, monkeypatch):
    command = ["ssh-agent", "-s", "-a", str(tmp_path / "agent")]
    agent = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    process = agent.split("SSH_AGENT_PID=")[1].split(";")[0]
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    try:
        alone = Path(shutil.copy(keys / "ada.pub", tmp_path / "alone.pub"))
        subprocess.run(["ssh-add", "-q", str(keys / "ada")], check=True)
        assert main(["sign", str(cert), "--key", str(alone)]) == 0
    finally:
        os.kill(int(process), 15)
    assert verify(cert, keys / "allowed") == 0


def test_a_certificate_that_is_not_valid_is_not_signed(cert, keys, capsys):
    (cert / "views.npz").unlink()
    cannot_sign(cert, keys / "ada", capsys, "was not signed, because it is not valid")


def test_nothing_is_written_through_a_link(cert, keys, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("years of work")
    (cert / SIGNATURE).symlink_to(victim)
    assert main(["sign", str(cert), "--key", str(keys / "ada")]) == 0
    assert victim.read_text() == "years of work" and not (cert / SIGNATURE).is_symlink()
    (tmp_path / "linked").symlink_to(cert)
    assert main(["sign", str(tmp_path / "linked"), "--key", str(keys / "ada")]) == 2


def test_without_ssh_keygen_both_commands_say_so(signed, keys, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["sign", str(signed), "--key", str(keys / "ada")]) == 2
    assert "apt install openssh-client" in capsys.readouterr().err
    assert verify(signed, keys / "allowed") == 2
    assert "apt install openssh-client" in capsys.readouterr().err
    assert main(["verify", str(signed)]) == 0


def test_a_list_of_signers_must_be_a_file(signed, tmp_path, capsys):
    assert verify(signed, tmp_path) == 2
    assert "is not a file of allowed signers" in capsys.readouterr().err


def test_a_new_certificate_in_the_folder_does_not_keep_an_old_signature(signed, made):
    command = ["certify", str(made / "transforms"), str(made / "model.ply"), "-o", str(signed)]
    assert main([*command, "--holdout", "3", "--predictor", "none", "--alpha", "1/4"]) == 0
    assert not (signed / SIGNATURE).exists()
