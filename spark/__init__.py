"""The store as a Spark data source."""
