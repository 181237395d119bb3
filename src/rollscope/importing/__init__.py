"""Reading other projects' files into runs of ours.

One module per foreign format speaks the small interface of `formats`; finding and reading files,
telling formats apart, keeping account and writing the run are shared.
"""
