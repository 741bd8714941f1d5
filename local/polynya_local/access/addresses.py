"""Addresses of clients and of proxies, each in one spelling."""

from ipaddress import IPv6Address, ip_address, ip_network


def address_key(text: str) -> str:
    """The key of an address: one for all its spellings, and one for each IPv6 network (/64)."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return f"address {text}"
    if isinstance(address, IPv6Address):
        # A machine may choose any address of its /64 network.
        network = int(address) >> 64 << 64
        address = address.ipv4_mapped or IPv6Address(network)
    return f"address {address}"


def network(text: str) -> str:
    """An address or a network in the form that uvicorn accepts.

    Raises:
        ValueError: the text is neither, or means all addresses.
    """
    parsed = ip_network(text.strip(), strict=False)
    if parsed.prefixlen == 0:
        raise ValueError(f"{text} includes every address: anybody could claim any sender")
    return str(parsed)
