"""Element types as Kineto writes them: sizes, kinds, promotion."""

from __future__ import annotations

from collections.abc import Iterable

BOOL, INTEGER, FLOAT, COMPLEX = range(4)

_BY_KIND: dict[int, dict[int, str]] = {
    BOOL: {1: "bool"},
    INTEGER: {
        1: "signed char|unsigned char|char|int8|uint8|c10::qint8|c10::quint8|c10::quint4x2",
        2: "short int|short|int16|unsigned short|short unsigned int|uint16",
        4: "int|int32|unsigned int|uint32|c10::qint32",
        8: "long int|long|long long|int64|unsigned long|long unsigned int|unsigned long long"
        "|uint64",
    },
    FLOAT: {
        1: "c10::Float8_e4m3fn|c10::Float8_e5m2|c10::Float8_e4m3fnuz|c10::Float8_e5m2fnuz"
        "|c10::Float8_e8m0fnu|c10::Float4_e2m1fn_x2|float8_e4m3fn|float8_e5m2|float8_e4m3fnuz"
        "|float8_e5m2fnuz|float8_e8m0fnu|float4_e2m1fn_x2",
        2: "c10::Half|c10::BFloat16|at::Half|at::BFloat16|half|bfloat16|float16",
        4: "float|float32",
        8: "double|float64",
    },
    COMPLEX: {
        4: "c10::complex<c10::Half>|complex32",
        8: "c10::complex<float>|complex64",
        16: "c10::complex<double>|complex128",
    },
}

_NAMES: dict[str, tuple[int, int]] = {
    prefix + name: (kind, size)
    for kind, sizes in _BY_KIND.items()
    for size, names in sizes.items()
    for name in names.split("|")
    for prefix in ("", "torch.")
}

_SCALAR_NAMES = (
    "Scalar ScalarList Int Bool Double Float Long GenericList Device String None Generator "
    "Stream Complex SymInt IntList DoubleList BoolList"
)
SCALARS = frozenset(_SCALAR_NAMES.split())
"""Type names of arguments that are no tensors. `GenericList` also holds tensors in old traces."""

_ENUM_NAMES = (
    "unsigned char|signed char|short int|int|long int|c10::Half|float|double"
    "|c10::complex<c10::Half>|c10::complex<float>|c10::complex<double>|bool|c10::qint8|c10::quint8"
    "|c10::qint32|c10::BFloat16|c10::quint4x2||bits1x8|bits2x4|bits4x2|bits8|bits16"
    "|c10::Float8_e5m2|c10::Float8_e4m3fn|c10::Float8_e5m2fnuz|c10::Float8_e4m3fnuz"
    "|unsigned short|unsigned int|unsigned long"
)
_ENUM = _ENUM_NAMES.split("|")


def element_bytes(dtype: str) -> int | None:
    """Bytes of one element; None for a name that is no element type."""
    known = _NAMES.get(dtype)
    return known[1] if known else None


def kind(dtype: str) -> int:
    """BOOL, INTEGER, FLOAT or COMPLEX; FLOAT for an unknown name."""
    return _NAMES.get(dtype, (FLOAT, 0))[0]


def from_enum(value: str) -> str | None:
    """The dtype a `dtype=` argument recorded as c10::ScalarType's number stands for."""
    number = int(value) if value.isdigit() else -1
    name = _ENUM[number] if 0 <= number < len(_ENUM) else ""
    return name if name in _NAMES else None


def accumulator(dtype: str) -> str:
    """What kernels keep statistics in: single precision for half types."""
    return "float" if element_bytes(dtype) in (1, 2) and kind(dtype) == FLOAT else dtype


def wider(one: str, other: str) -> str:
    """The promotion of two tensor dtypes of the same rank of priority."""
    if one == other or other not in _NAMES:
        return one
    if one not in _NAMES:
        return other
    low, high = sorted((one, other), key=lambda name: _NAMES[name])
    same = _NAMES[low] == _NAMES[high]
    mixed = {FLOAT: "float", INTEGER: "short int"}
    return mixed.get(_NAMES[high][0], high) if same and _NAMES[high][1] <= 2 else high


def promote(dimensioned: Iterable[str], numbers: Iterable[str]) -> str:
    """Result dtype of an elementwise op.

    Args:
        dimensioned: Dtypes of tensors that have dimensions.
        numbers: Dtypes of 0-dim tensors and Python numbers, which only raise the kind.

    Returns:
        The dtype name, "" where nothing is known.
    """
    first, second = _widest(dimensioned), _widest(numbers)
    if not first or not second:
        return first or second
    if kind(second) <= kind(first):
        return first
    return "float" if second == "double" else second


def _widest(dtypes: Iterable[str]) -> str:
    result = ""
    for dtype in dtypes:
        result = wider(result, dtype) if result else dtype
    return result
