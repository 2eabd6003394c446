"""Delay levels: messages that wait in SCHEDULE_TOPIC_XXXX until their level's time has passed."""
