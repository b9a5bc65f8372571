"""Compressing bodies, as producers do before they send them; the broker itself never does."""

from __future__ import annotations

from storage.format.compress import COMPRESS_OVER_BYTES, compress
from storage.format.sys_flag import MessageSysFlag


def compress_body(body: bytes, over_bytes: int = COMPRESS_OVER_BYTES) -> tuple[bytes, int]:
    """Compress a body as producers do before they send it: from ``over_bytes`` on, zlib level 5.

    Gives the body to send and the bits for ``SendOptions.sys_flag``; it is used even
    if it is not shorter (DefaultMQProducerImpl.tryToCompressMessage). Batches are never compressed.
    """
    if len(body) < over_bytes:
        return body, 0
    return compress(body), MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
