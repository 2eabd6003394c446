"""What can go wrong in the store, as one tree; the server maps it to replies and exit sentences.

StorageError              the root; str() is one clear sentence
├── StoreLockedError      another server holds the folder
├── StoreUnusableError    the folder or a file in it cannot be opened as a store
├── StoreCorruptError     a file is damaged where no truncation may mend it; names file, place
├── DiskFullError         no space for another append; reads go on
├── FlushFailedError      a sync failed: what the disk holds is unknown, no append is safe
└── StoreClosedError      used after close()
"""


class StorageError(Exception):
    """Root of the store's own errors; str() is one sentence fit for a user."""


class StoreLockedError(StorageError):
    """Another process, or another store object, has this folder open."""


class StoreUnusableError(StorageError):
    """The folder or a file in it cannot be opened as a store."""


class StoreCorruptError(StorageError):
    """A file of the store breaks its format where that must not be mended by dropping data."""


class DiskFullError(StorageError):
    """There is no space for the next append."""


class FlushFailedError(StorageError):
    """A sync failed; the kernel may have dropped the data, so the store stops accepting appends."""


class StoreClosedError(StorageError):
    """The store was used after it was closed."""
