"""Dead letters by a common property: the counts, and the letters of the count under the cursor."""

from .looks.dead_letters import where_of
from .looks.look import Place
from .panes import Pane
from .tables import shape_options


class LettersPane(Pane):
    """The letters of what the cursor of another pane is on. Marks stay when it moves."""

    def command(self) -> str:
        """The command, with the condition of the place and the one of the user."""
        view = self.table.view
        own = where_of(self.place)
        if own is not None and view.where:
            view = view._replace(where=f"({own}) and ({view.where})")
            return self.look.command(Place("letters", (self.place.name,)), *shape_options(view))
        return super().command()
