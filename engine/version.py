"""The version of Reprise. The package takes its own from here."""

VERSION = "0.2.0"
