"""The inbox: what people are asked, and the form of an answer."""
