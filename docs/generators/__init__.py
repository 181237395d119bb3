"""The pages of docs/ that are written from the code, one module for each subject.

`scripts/write-docs` writes them; a test sees that what stands in docs/ is what they give.
"""
