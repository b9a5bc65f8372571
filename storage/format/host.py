"""A host as a record holds it: 4 or 16 address bytes, then the port as a 4-byte int.

0           4 or 16        +4
+-----------+--------------+
| address   | port         |      8 bytes for IPv4, 20 for IPv6
+-----------+--------------+
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

IPV4_HOST_SIZE: Final = 8
IPV6_HOST_SIZE: Final = 20

_IPV4: Final = Struct(">4Bi")
_IPV6: Final = Struct(">8Hi")


@lru_cache(maxsize=1024)
def pack_host(host: str) -> bytes:
    """Pack ``ip:port`` (IPv6: ``[ip]:port``); ValueError for names, zones and anything else."""
    address, separator, port = host.rpartition(":")
    if not separator or not (port.isascii() and port.isdigit()):
        raise ValueError(f"{host!r} is not ip:port")
    port_bytes = _checked_port(host, int(port))
    if address.startswith("[") and address.endswith("]"):
        return _pack_ipv6(address[1:-1]) + port_bytes
    parts = address.split(".")
    if len(parts) != 4 or not all(p.isascii() and p.isdigit() and len(p) <= 3 for p in parts):
        raise ValueError(f"{host!r} is not an IPv4 address and a port")
    numbers = [int(part) for part in parts]
    if max(numbers) > 255:
        raise ValueError(f"{host!r} is not an IPv4 address and a port")
    return bytes(numbers) + port_bytes


def _checked_port(host: str, port: int) -> bytes:
    if port > 65535:
        raise ValueError(f"{host!r} has a port above 65535")
    return port.to_bytes(4, "big")


def _pack_ipv6(address: str) -> bytes:
    from ipaddress import IPv6Address  # 2 ms to import, and rarely needed

    if "%" in address:
        raise ValueError(f"IPv6 address {address!r} has a zone, which the format can not hold")
    return IPv6Address(address).packed


@lru_cache(maxsize=1024)
def unpack_host(data: bytes) -> str:
    """Write a packed host as ``ip:port``; IPv6 in brackets, shortened as RFC 5952 has it.

    The port is shown as the int it is, also when damage made it negative or too large. Raises
    ValueError unless there are 8 or 20 bytes.
    """
    if len(data) == IPV4_HOST_SIZE:
        a, b, c, d, port = _IPV4.unpack(data)
        return f"{a}.{b}.{c}.{d}:{port}"
    if len(data) != IPV6_HOST_SIZE:
        raise ValueError(f"a host has 8 or 20 bytes, not {len(data)}")
    *groups, port = _IPV6.unpack(data)
    return f"[{_shortest(groups)}]:{port}"


def _shortest(groups: list[int]) -> str:
    """Leave out the first longest run of at least two zero groups."""
    best_start, best_length = 0, 1
    start = 0
    while start < 8:
        end = start
        while end < 8 and groups[end] == 0:
            end += 1
        if end - start > best_length:
            best_start, best_length = start, end - start
        start = max(end, start + 1)
    words = [f"{group:x}" for group in groups]
    if best_length == 1:
        return ":".join(words)
    return f"{':'.join(words[:best_start])}::{':'.join(words[best_start + best_length :])}"
