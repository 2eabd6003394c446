"""What can go wrong in the store, as one tree; server/failures.py maps it to replies and exit sentences.

StorageError                the root: one clear sentence, never a traceback for the user
├── StoreLocked             another server holds the folder
├── StoreCorrupt            a file is not what it must be; names the file and, where known, the offset
├── StoreUnusable           the folder cannot be used: permissions, not a folder, wrong file size
├── DiskFull                no space for another append; reads go on
├── FlushFailed             the disk refused a sync: what it holds is unknown, no further append is safe
└── StoreClosed             used after close()
"""


class StorageError(Exception):
    """Root of the store's own errors; str() is one sentence fit for a user."""


class StoreLocked(StorageError):
    """Another process, or another store object, has this folder open."""


class StoreCorrupt(StorageError):
    """A file of the store breaks its format where that cannot be repaired by truncation."""


class StoreUnusable(StorageError):
    """The folder or a file in it cannot be opened as a store."""


class DiskFull(StorageError):
    """Space for the next append could not be reserved."""


class FlushFailed(StorageError):
    """A sync failed; the kernel may have dropped the data, so the store stops accepting appends."""


class StoreClosed(StorageError):
    """The store was used after it was closed."""
