"""The type of the columns of records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
