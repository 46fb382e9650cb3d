"""What can be wrong with a Gram matrix on disk; defined in `rntk.errors`."""

from __future__ import annotations

from ..errors import ClusterError as ClusterError
from ..errors import DamagedTileError as DamagedTileError
from ..errors import GramStoreError as GramStoreError
from ..errors import StoreFullError as StoreFullError
from ..errors import name_tiles as name_tiles
