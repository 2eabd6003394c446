"""Arbitrary timers: messages that wait in rmq_sys_wheel_timer until a time of their own."""
