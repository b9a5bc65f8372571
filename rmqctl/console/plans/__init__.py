"""Changes in the console: each is a plan on a screen of its own before anything is done.

``offered`` is the table of the changes. A ``Wish`` says how the plan of one is made, by the
function of rmqctl.admin that the command calls. ``planning`` makes the plan in the reader's thread,
``work`` carries it out in a thread of its own, ``sheet`` is what a person sees and types meanwhile,
``desk`` is what the app calls. Nothing here imports Textual.
"""
