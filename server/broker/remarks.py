"""Texts that Java's broker adds to its remarks, so that a client prints what it always printed."""

FAQ_URL = "https://rocketmq.apache.org/docs/bestPractice/06FAQ"


def see_faq(remark: str) -> str:
    """A remark followed by Java's pointer to the FAQ."""
    return f"{remark}\nSee {FAQ_URL} for further details."
