"""The report as one HTML page that opens from a disk, without a network.

`frame.html` is its beginning, `look.css` its style; `words.js`, `tables.js`, `charts.js` and
`main.js` are one script that draws everything from the report, which is in the page as JSON.
"""
