"""What can go wrong in the data source, as one tree; str() is one clear sentence.

SparkSourceError        the root
├── OptionError         an option is mistyped, missing or contradicts another; raised on the driver
├── StoreReadError      the folder is no store, or a file in it is damaged; names file and position
├── DataLossError       messages that were asked for are gone (failOnDataLoss)
└── BrokerError         a name server or broker cannot be reached, or refuses
"""


class SparkSourceError(Exception):
    """Anything that this package raises on purpose."""


class OptionError(SparkSourceError, ValueError):
    """The user's options do not make sense."""


class StoreReadError(SparkSourceError):
    """The files do not hold what they should."""


class DataLossError(SparkSourceError):
    """Messages have expired, or were cut off, before they were read."""


class BrokerError(SparkSourceError):
    """A server did not answer, or answered with an error."""
