"""Packed hosts."""

import ipaddress

import pytest
from hypothesis import given, strategies as st

from storage.format.host import pack_host, unpack_host

ports = st.integers(0, 65535)


@given(st.ip_addresses(v=4), ports)
def test_ipv4_hosts_come_back(address: ipaddress.IPv4Address, port: int) -> None:
    packed = pack_host(f"{address}:{port}")
    assert packed == address.packed + port.to_bytes(4, "big")
    assert unpack_host(packed) == f"{address}:{port}"


@given(st.ip_addresses(v=6), ports)
def test_ipv6_hosts_come_back(address: ipaddress.IPv6Address, port: int) -> None:
    packed = pack_host(f"[{address}]:{port}")
    assert packed == address.packed + port.to_bytes(4, "big")
    text = unpack_host(packed)
    assert pack_host(text) == packed
    if address.ipv4_mapped is None:  # Python 3.13 began to write these with a dotted tail
        assert text == f"[{address.compressed}]:{port}"


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("2001:db8:0:0:0:0:0:1", "2001:db8::1"),
        ("0:0:0:0:0:0:0:0", "::"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:0:0:2:3:0:0:4", "1::2:3:0:0:4"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"),
        ("0:0:3:4:5:6:7:8", "::3:4:5:6:7:8"),
        ("0:2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
        ("2001:0DB8::00ab", "2001:db8::ab"),
    ],
)
def test_ipv6_is_written_as_rfc_5952_wants_it(long: str, short: str) -> None:
    assert unpack_host(pack_host(f"[{long}]:10911")) == f"[{short}]:10911"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost:1",
        "1.2.3:4",
        "1.2.3.4.5:6",
        "1.2.3.256:1",
        "1.2.3.4:65536",
        "1.2.3.4:-1",
        "1.2.3.4:",
        "[::1]",
        "[::1:5",
        "::1]:5",
        "1.2.3.0004:5",
        ":5",
        "12345",
        "1.2.3.4:\u0665",
        "1.2.3.4",
        "[fe80::1%eth0]:1",
        "[1.2.3.4]:1",
        "::1:1",
        "",
        "1.2.3.\u0664:1",
    ],
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        pack_host(host)


def test_a_port_has_sixteen_bits() -> None:
    assert pack_host("1.2.3.255:65535") == bytes((1, 2, 3, 255, 0, 0, 255, 255))
    with pytest.raises(ValueError, match="has a port above 65535"):
        pack_host("1.2.3.4:65536")


def test_a_damaged_port_is_shown_as_it_is() -> None:
    assert unpack_host(bytes((1, 2, 3, 4, 0xFF, 0xFF, 0xFF, 0xFF))) == "1.2.3.4:-1"


@pytest.mark.parametrize("size", [0, 4, 9, 19, 21])
def test_only_two_lengths_are_hosts(size: int) -> None:
    with pytest.raises(ValueError, match="8 or 20 bytes"):
        unpack_host(bytes(size))
