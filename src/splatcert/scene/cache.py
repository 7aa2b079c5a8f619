# SPDX-License-Identifier: Apache-2.0
"""Decoded pixels kept within a memory limit, the least recently used given up first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from splatcert.errors import InputError

DEFAULT_CACHE_BYTES = 1 << 30


class PixelCache:
    """Arrays of bytes by key. Whatever does not fit is decoded again when asked for.

    A pickled copy starts empty, so that sending a scene to another process does
    not send its pictures.
    """

    def __init__(self, limit: int = DEFAULT_CACHE_BYTES) -> None:
        if limit < 0:
            raise InputError(f"a cache limit is a number of bytes, got {limit}")
        self.limit = limit
        self._arrays: OrderedDict[Hashable, NDArray[np.generic]] = OrderedDict()
        self._used = 0
        self._lock = Lock()

    @property
    def used(self) -> int:
        """Bytes held now; never more than `limit`."""
        return self._used

    def __len__(self) -> int:
        return len(self._arrays)

    def get(self, key: Hashable, make: Callable[[], NDArray[np.generic]]) -> NDArray[np.generic]:
        """The array under this key, made if it is not there; read-only."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
                return self._arrays[key]
        # Decoding happens outside the lock: two threads may then do the same
        # work once, which is cheaper than all threads waiting for each photo.
        array = make()
        array.setflags(write=False)
        with self._lock:
            self._keep(key, array)
        return array

    def _keep(self, key: Hashable, array: NDArray[np.generic]) -> None:
        if array.nbytes > self.limit or key in self._arrays:
            return
        while self._used + array.nbytes > self.limit:
            _, dropped = self._arrays.popitem(last=False)
            self._used -= dropped.nbytes
        self._arrays[key] = array
        self._used += array.nbytes

    def __reduce__(self) -> tuple[type[PixelCache], tuple[int]]:
        return PixelCache, (self.limit,)
