"""Sockets, time, threads and policy: the name server and the broker."""
