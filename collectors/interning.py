"""Texts as small integers: one growing dictionary a column, shared by all batches of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int32]
Column = Any
"""An Arrow array or chunked array; pyarrow's stubs have no type that takes both."""
NULL = -1
"""The code of a missing text."""


class Interner:
    """Gives each distinct text a dense code from 0, in order of appearance."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._codes: dict[str, int] = {}
        for text in texts:
            self.code(text)

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def texts(self) -> list[str]:
        """All texts, by code."""
        return list(self._codes)

    def code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def codes(self, column: Column) -> Codes:
        """Codes of a string column; NULL for nulls."""
        array: Column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if array.null_count == len(array):
            return np.full(len(array), NULL, np.int32)
        encoded = array.dictionary_encode()
        texts: list[str] = encoded.dictionary.to_pylist()
        wanted = [self.code(text) for text in texts]
        lookup = np.array([*wanted, NULL], np.int32)
        places: Column = pc.fill_null(encoded.indices, pa.scalar(len(wanted), pa.int32()))
        codes: Codes = lookup[places.to_numpy(zero_copy_only=False)]
        return codes


def dictionary_array(codes: Codes, texts: Sequence[str] | Column) -> Column:
    """Arrow dictionary column of codes; code `NULL` becomes null."""
    values = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.string())
    indices = pa.array(codes, pa.int32(), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, values)
