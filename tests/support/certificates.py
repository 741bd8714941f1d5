"""A certificate for servers of this machine, which programs trust that this process starts."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import certifi

TRUSTED = "SSL_CERT_FILE"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, in files (PEM)."""

    chain: Path
    key: Path


def trusted_certificate(folder: Path) -> Certificate:
    """Make a certificate; from now on it is trusted beside those of public authorities."""
    one = Certificate(folder / "certificate.pem", folder / "key.pem")
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    files = ["-keyout", one.key, "-out", one.chain]
    command = ["openssl", "req", *words, "-addext", names, *files]
    subprocess.run(command, check=True, capture_output=True)
    others = Path(os.environ.get(TRUSTED) or certifi.where()).read_text()
    trusted = folder / "trusted.pem"
    trusted.write_text(others + one.chain.read_text())
    os.environ[TRUSTED] = str(trusted)
    return one
