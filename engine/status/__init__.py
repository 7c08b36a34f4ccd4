"""Where an instance stands, and the sentence that says so: what it waits for, why it failed, who paused it.

`facts` is plain data, `gathering` reads it, `why` makes the sentence: for the Studio's pages, for the command line, for
whoever asks.
"""
