"""`rollscope top`: the viewer's pages in a terminal, over the files of a run.

`reader` owns the run and the one thread that reads it, `pages` what is seen, `app` the keys and
the way from page to page. The text itself is made by `rollscope.screens`.
"""
