"""Rates between two looks at a cluster, and how they are shown."""

from rich.console import Console

from pyritemq.server.top import Group, LaneDepth, Look, Topic, compare
from pyritemq.server.top_cli import picture


def a_look(seconds, topics=(), groups=(), lanes=()):
    return Look(seconds, dict(topics), dict(groups), dict(lanes))


def shown(view, lines):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(picture(view, lines=lines))
    console.file.close()
    return console.export_text()


def test_what_is_new_or_was_reset_has_no_rate():
    before = a_look(0, [("Old", Topic(4, 9, 100))], [("g", Group(1, 0, {"Old": 100}))])
    topics = [("Old", Topic(4, 1, 1)), ("New", Topic(4, 5, 5))]
    groups = [("g", Group(1, 0, {"Old": 1, "New": 5})), ("h", Group(1, 0, {"New": 5}))]
    view = compare(before, a_look(1, topics, groups))
    assert all((line.in_tps, line.out_tps) == (0, 0) for line in view.topics)
    assert all(line.tps == 0 for line in view.groups)


def test_the_busiest_come_first():
    before = a_look(0, [("a", Topic(1, 0, 0)), ("b", Topic(1, 0, 0))])
    view = compare(before, a_look(2, [("a", Topic(1, 1, 1)), ("b", Topic(1, 4, 4))]))
    assert [(line.name, line.in_tps) for line in view.topics] == [("b", 2.0), ("a", 0.5)]


def test_a_small_terminal_gets_a_few_lines_and_is_told_how_many_are_missing():
    topics = [(f"Topic{number}", Topic(1, number, number)) for number in range(20)]
    lanes = [(("b", "send"), LaneDepth(9, 10))]
    text = shown(compare(a_look(0), a_look(1, topics, lanes=lanes)), lines=5)
    assert "Topic19" in text
    assert "Topic14" not in text
    assert "15 topics and groups are not shown" in text
    assert "send" in text


def test_brackets_in_a_name_are_shown_as_they_are():
    text = shown(compare(a_look(0), a_look(1, [("[red]x[/red]", Topic(1, 0, 0))])), lines=5)
    assert "[red]x[/red]" in text
