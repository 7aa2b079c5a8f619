# SPDX-License-Identifier: Apache-2.0
"""Pages for people: names from files stay words, and the viewer serves this machine alone."""

from __future__ import annotations

import http.client
import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from resealed import VIEWS, seal_again
from valid_files import write_results, write_valid_files

from splatcert.cli import main
from waiting import PATIENCE

ATTACK = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}"
OF_DOUBTS = {("aside", ("class",)), ("details", ("open",))}
"""Elements of the page itself, where checks fail or something is missing."""
LOOPBACK = "0100007F"
LISTENING = "0A"


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_valid_files(tmp_path_factory.mktemp("pages") / "valid")
    write_results(root)
    return root


class Outline(HTMLParser):
    """Elements with the names of their attributes, in order; and all words between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data):
        self.words += data


def hostile_certificate(valid: Path, folder: Path) -> Path:
    """A sealed certificate that says an attack wherever it may say anything."""
    it = folder / "cert"
    shutil.copytree(valid / "cert", it)
    content = json.loads((it / "certificate.json").read_text())
    groups = ("training", "calibration", "unlabelled")
    names = [view["name"] for group in groups for view in content[group]]
    new = {name: f"{ATTACK}{k}" for k, name in enumerate(names)}
    for view in (view for group in groups for view in content[group]):
        view["name"] = new[view["name"]]
    for entry in content["labels"]["ledger"]:
        entry |= {"by": ATTACK, "views": [new[name] for name in entry["views"]]}
    content["scene"] |= {"name": ATTACK, "split": ATTACK, "format": ATTACK, "sizes": {ATTACK: 18}}
    content["field"]["ending"] = content["guarantee"]["statement"] = ATTACK
    content["splatcert"] = content["created"] = ATTACK
    (it / "certificate.json").write_text(json.dumps(content))
    with np.load(it / VIEWS) as found:
        arrays = dict(found)
    arrays["scene"] = np.array(ATTACK)
    for role in ("training_names", "held_out_names"):
        arrays[role] = np.array([new[name] for name in arrays[role]])
    with (it / VIEWS).open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    seal_again(it)
    return it


@pytest.mark.parametrize("model", [(), ("--model", "model.ply")])
def test_a_report_shows_an_attack_as_words(model, valid, tmp_path, capsys):
    pages = {}
    for name, it in (("ours", valid / "cert"), ("theirs", hostile_certificate(valid, tmp_path))):
        given = [str(valid / word) if word.endswith(".ply") else word for word in model]
        page = tmp_path / f"{name}.html"
        status = main(["report", str(it), "-o", str(page), *(given or ["--alone"])])
        assert status == 0, capsys.readouterr().err
        pages[name] = Outline(page.read_text())
    ours, theirs = pages["ours"], pages["theirs"]
    assert ATTACK in theirs.words
    assert [tag for tag, _ in theirs.elements].count("script") == 1
    assert {*theirs.elements} <= {*ours.elements} | OF_DOUBTS
    assert not [name for _, names in theirs.elements for name in names if name.startswith("on")]


def test_the_page_of_results_holds_no_element(valid, tmp_path):
    it = tmp_path / "bench_out"
    shutil.copytree(valid / "bench_out", it)
    study = it / "studies" / "truck-fastgs-model.npz"
    with np.load(study) as found:
        arrays = dict(found)
    header = json.loads(str(arrays["header"]))
    header |= {"scene": ATTACK, "family": ATTACK, "settings": {ATTACK: ATTACK}}
    arrays["header"] = np.array(json.dumps(header))
    with study.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    assert main(["results", str(it)]) == 0
    for page in [it / "results.md", *(it / "tables").glob("*.md")]:
        text = page.read_text()
        assert "<script" not in text and "<img" not in text, page
    assert "&lt;script" in (it / "results.md").read_text()


def test_words_of_the_viewer_are_escaped(valid):
    pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
    from splatcert.deploy import open_certificate
    from splatcert_viewer import html
    from splatcert_viewer.shown import ViewerState

    state = ViewerState.of(open_certificate(valid / "cert"), None)
    view = state.views[0]
    words = html.card_words(type(view)(**{**vars(view), "name": ATTACK}), ATTACK, 1.0)
    assert "<script" not in words and "<img" not in words and "&lt;script" in words


@pytest.fixture
def address(valid):
    """Where a viewer serves."""
    pytest.importorskip("viser", reason="viser is not installed: pip install splatcert[view]")
    from splatcert.deploy import open_certificate
    from splatcert_viewer.command import View
    from splatcert_viewer.serve import serving
    from splatcert_viewer.shown import ViewerState

    host = View(certificate=valid).host
    state = ViewerState.of(open_certificate(valid / "cert"), None)
    with serving(state, host, 0, print) as server:
        yield server.get_host(), server.get_port(), server.token


def test_the_viewer_listens_on_this_machine_alone(address):
    assert address[0] == "127.0.0.1"
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [entry[1].split(":") for entry in sockets if entry[3] == LISTENING]
    here = [host for host, port in listening if int(port, 16) == address[1]]
    assert here == [LOOPBACK]
    tcp6 = Path("/proc/net/tcp6")
    ports = [line.split()[1].rsplit(":", 1)[1] for line in tcp6.read_text().splitlines()[1:]]
    assert f"{address[1]:04X}" not in ports


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "//etc/passwd",
        "/../../../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/..\\..\\..\\..\\..\\..\\etc\\passwd",
        "/assets/../../../../../../../../../etc/passwd",
        "/index.html%00/etc/passwd",
        "/?file=/etc/passwd",
        "file:///etc/passwd",
    ],
)
def test_the_viewer_serves_no_file_of_the_machine(path, address):
    secret = Path("/etc/passwd").read_bytes()
    for place in (path, f"/{address[2]}{path}"):
        connection = http.client.HTTPConnection(*address[:2], timeout=PATIENCE)
        connection.putrequest("GET", place, skip_host=False)
        connection.endheaders()
        answer = connection.getresponse()
        assert secret[:40] not in answer.read()


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_the_viewer_takes_no_file(method, address):
    connection = http.client.HTTPConnection(*address[:2], timeout=PATIENCE)
    connection.request(method, f"/{address[2]}/index.html", body=b"x" * 100)
    try:
        assert connection.getresponse().status >= 400
    except (http.client.HTTPException, ConnectionError):
        pass  # it hung up
