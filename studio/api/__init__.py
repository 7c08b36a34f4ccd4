"""The HTTP API: what people do in the Studio, programs do here, with the same permissions and the same words."""
