"""x."""

from biglp._core.blocks import available_memory as available_memory


def card_memory(device: str) -> int | None:
    """Y."""
    return None
