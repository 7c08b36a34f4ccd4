"""Read an instance and describe its state in a sentence, for pages, commands and programs.

`snapshot` is an instance in one of its generations, `record` reads everything that belongs to it. `facts` is plain
data, `gathering` reads it, `status_line` builds the sentence.
"""
