"""Configuration as Java's property files name it: the kit and one table a Java class."""
