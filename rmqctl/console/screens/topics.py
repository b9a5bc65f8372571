"""The screens of topics."""

from typing import Final

from rmqctl.console.looks import topics
from rmqctl.console.specs import PaneSpec, ScreenSpec
from rmqctl.console.topic_pane import FiguresPane, HoursPane, SharesPane

SCREENS: Final = {
    "topics": ScreenSpec(lambda place: "Topics", [PaneSpec(topics.TOPICS)]),
    "topic": ScreenSpec(
        lambda place: f"Topics > {place.name}",
        [
            PaneSpec(
                topics.QUEUES,
                also=[topics.DESCRIPTION, topics.READERS],
                height=2,
                still=True,
                pane=FiguresPane,
            ),
            PaneSpec(
                topics.QUEUES, "QUEUES", height=4, tall=6, still=True, follows=2, pane=SharesPane
            ),
            PaneSpec(topics.QUEUES, "QUEUES", share=2),
            PaneSpec(topics.READERS, "GROUPS THAT READ IT"),
            PaneSpec(topics.HOURS, "HOURS", height=6, room=26, still=True, pane=HoursPane),
        ],
        start=2,
    ),
}
