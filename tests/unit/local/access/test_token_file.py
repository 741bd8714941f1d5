"""The file of tokens: who has which, and what a change of the file does."""

import base64
import os
from hashlib import sha256
from types import SimpleNamespace

import pytest
from polynya.runtime.errors import Misconfigured, NotAuthorized
from polynya_local.access import token_file as module
from polynya_local.access.callers import Callers, refusal, token_of
from polynya_local.access.token_file import TokenFile
from polynya_local.cli import app
from polynya_local.messages import Request
from typer.testing import CliRunner


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The seconds of the clock by which the file is looked at again."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: now.seconds)
    return now


def hashed(token: str) -> str:
    return f"sha256:{sha256(token.encode()).hexdigest()}"


def made(name: str, file: os.PathLike[str]) -> str:
    result = CliRunner().invoke(app, ["token", name, "--file", str(file)])
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_the_command_adds_a_line_and_keeps_no_token(tmp_path):
    file = tmp_path / "tokens"
    ada, job = made("ada", file), made("nightly-job", file)
    assert ada not in file.read_text() and len(ada) >= 43
    assert file.stat().st_mode & 0o077 == 0
    tokens = TokenFile(file)
    assert (tokens.name_of(ada), tokens.name_of(job)) == ("ada", "nightly-job")
    assert tokens.name_of(ada[:-1]) is None and tokens.name_of("") is None


def test_the_command_begins_a_line_of_its_own(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"bob {hashed('b')}")
    ada = made("ada", file)
    tokens = TokenFile(file)
    assert (tokens.name_of(ada), tokens.name_of("b")) == ("ada", "bob")


@pytest.mark.parametrize("name", ["a b", "a=b", "#a", "", "a\nb"])
def test_the_command_refuses_such_a_name(tmp_path, name):
    result = CliRunner().invoke(app, ["token", "--file", str(tmp_path / "tokens"), "--", name])
    assert result.exit_code == 2 and not (tmp_path / "tokens").exists()


def test_a_change_holds_within_a_second(tmp_path, clock):
    file = tmp_path / "tokens"
    file.write_text(f"# who\n\nada {hashed('a')}  # until May\nbob {hashed('b')}\n")
    tokens = TokenFile(file)
    file.write_text(f"bob {hashed('b')}\neve {hashed('e')}\n")
    os.utime(file, ns=(1, 1))
    clock.seconds = 2
    assert [tokens.name_of(token) for token in "abe"] == [None, "bob", "eve"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ada my-token", "line 1 .* is not `name sha256:…`"),
        ("ada sha256:abc", "line 1 .* is not"),
        (f"\nada eve {hashed('a')}", "line 2 .* is not"),
        (f"ada {hashed('a')}\nbob {hashed('a')}", "line 2 .* repeats a token"),
    ],
)
def test_a_wrong_line_lets_nobody_in(tmp_path, clock, text, reason):
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(Misconfigured, match=reason) as raised:
        TokenFile(file)
    assert "my-token" not in str(raised.value)
    file.write_text(f"ada {hashed('a')}\n")
    tokens = TokenFile(file)
    for seconds in (2, 4):  # each time, not only once
        file.write_text(text)
        os.utime(file, ns=(1, 1))
        clock.seconds = seconds
        with pytest.raises(Misconfigured, match=reason):
            tokens.name_of("a")


def test_a_missing_file_lets_nobody_in_and_strangers_do_not_learn_where_it_was(
    tmp_path, clock, caplog
):
    file = tmp_path / "tokens"
    file.write_text(f"ada {hashed('a')}\n")
    tokens = TokenFile(file)
    file.unlink()
    clock.seconds = 2
    with pytest.raises(Misconfigured, match="cannot be read: No such file") as raised:
        tokens.name_of("a")
    answer = refusal(raised.value)
    assert answer.status == 500 and b"its log says why" in answer.body
    assert str(tmp_path).encode() not in answer.body and str(file) in caplog.text


# getToken, for clients with a `credential`


class Form:
    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> bytes:
        return self.text.encode()


def asked(tmp_path, form: str, authorization: str = "") -> tuple[int, str]:
    file = tmp_path / "tokens"
    file.write_text(f"ada {hashed('s&cret')}\n")
    headers = (("Authorization", authorization),) if authorization else ()
    request = Request("POST", "/v1/oauth/tokens", "", headers, Form(form))
    response = Callers(TokenFile(file), []).token_answer(request, "http://127.0.0.1:8181")
    return response.status, response.body.decode()


FORM = "grant_type=client_credentials&scope=catalog&client_id={}&client_secret={}"


@pytest.mark.parametrize(
    ("form", "authorization"),
    [
        (FORM.format("ada", "s%26cret"), ""),
        (FORM.format("", "s%26cret"), ""),
        ("grant_type=client_credentials", "Basic " + base64.b64encode(b"ada:s%26cret").decode()),
    ],
)
def test_an_id_and_a_secret_are_a_token(tmp_path, form, authorization):
    status, body = asked(tmp_path, form, authorization)
    assert status == 200 and '"access_token": "s&cret"' in body


@pytest.mark.parametrize(
    ("form", "authorization", "status", "error"),
    [
        (FORM.format("ada", "secret"), "", 401, "invalid_client"),
        (FORM.format("bob", "s%26cret"), "", 401, "invalid_client"),
        (FORM.format("ada", ""), "", 401, "invalid_client"),
        ("grant_type=client_credentials", "Basic x", 401, "invalid_client"),
        ("grant_type=password&client_id=ada&client_secret=s%26cret", "", 400, "unsupported_grant"),
        ("", "", 400, "unsupported_grant_type"),
        ("\xff" * 9, "", 400, "unsupported_grant_type"),
    ],
)
def test_other_forms_get_no_token(tmp_path, form, authorization, status, error):
    found, body = asked(tmp_path, form, authorization)
    assert found == status and error in body and "s&cret" not in body


def test_nobody_is_known_by_an_empty_token(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"ada {hashed('')}\n")
    request = Request("GET", "/", "", (("Authorization", "Bearer "),), None)
    with pytest.raises(NotAuthorized):
        Callers(TokenFile(file), []).bearer(token_of(request))
