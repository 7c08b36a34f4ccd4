"""What is recorded of an instance, and the sentence that says where it stands, for pages, commands and programs.

`snapshot` is an instance as it was in one of its generations, `record` reads all that belongs to it. `facts` is plain
data, `gathering` reads it, `status_line` makes the sentence.
"""
