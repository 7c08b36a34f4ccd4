"""The tab with the drawing of the handler and its code, painted with what the instance has done."""
