"""What the server asks its machine: name, address, processors, home.  Called once at start."""

import os
import socket
from pathlib import Path

from pyritemq.compat.conf.settings import HostFacts

# RFC 5737's documentation network: connecting a datagram socket to it sends nothing, but makes the
# kernel choose the address that other machines would see.
_ANYWHERE = ("192.0.2.1", 9)


def host_facts() -> HostFacts:
    """The machine as Java's configuration defaults want to know it."""
    return HostFacts(
        host_name=socket.gethostname() or "DEFAULT_BROKER",
        address=local_address(),
        processors=os.cpu_count() or 1,
        home=str(Path.home()),
        rocketmq_home=os.environ.get("ROCKETMQ_HOME"),
        namesrv_addr=os.environ.get("NAMESRV_ADDR"),
    )


def local_address() -> str:
    """The address that other machines reach this one at; loopback where there is no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(_ANYWHERE)
        except OSError:
            return "127.0.0.1"
        return str(sock.getsockname()[0])


def resolve(host: str) -> str:
    """The IP address of a host name; ValueError with one sentence if there is none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"cannot find the address of host {host}: {error.strerror}") from error
    # A name with both kinds of addresses is given to clients as IPv4, which all of them speak.
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return str(found[0][4][0])
