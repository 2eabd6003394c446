"""The files of arbitrary timers: `timerwheel`, `timerlog/` and `config/timercheck`."""
