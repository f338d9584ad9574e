"""Numbers and bare words of broken JSON as valid JSON, digits untouched where possible."""

from __future__ import annotations

import math
import re

_STRICT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LOOSE_NUMBER = re.compile(r"([-+]?)0*([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]+)?")
_HEX_NUMBER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]{1,32})")
_NOT_A_NUMBER = re.compile(
    r"[-+]?(?:inf(?:inity)?|[sq]?nan(?:\(\w*\))?|1\.#(?:inf|ind|qnan|snan)\w*)", re.IGNORECASE
)
_LITERALS = {"true": "true", "false": "false", "null": "null", "none": "null"}


def scalar(token: str) -> tuple[str, str | None]:
    """A bare word as JSON, and the kind of issue where it was none: `("null", "bad_value")`."""
    if _STRICT_NUMBER.fullmatch(token):
        return ("null", "absurd_number") if math.isinf(float(token)) else (token, None)
    if token in _LITERALS and token != "none":
        return token, None
    if token.lower() in _LITERALS:
        return _LITERALS[token.lower()], "bad_value"
    if _NOT_A_NUMBER.fullmatch(token):
        return "null", "not_a_number"
    return _loose_number(token)


def _loose_number(token: str) -> tuple[str, str | None]:
    match = _HEX_NUMBER.fullmatch(token)
    if match:
        return f"{_minus(match.group(1))}{int(match.group(2), 16)}", "bad_number"
    match = _LOOSE_NUMBER.fullmatch(token)
    if match is None or not any(char.isdecimal() for char in token):
        return "null", "bad_value"
    sign, whole, fraction, exponent = match.groups(default="")
    if not whole and not fraction and "0" not in token.lower().split("e")[0]:
        return "null", "bad_value"
    number = f"{_minus(sign)}{whole or '0'}{'.' * bool(fraction)}{fraction}{exponent}"
    return ("null", "absurd_number") if math.isinf(float(number)) else (number, "bad_number")


def _minus(sign: str) -> str:
    return "-" if sign == "-" else ""
