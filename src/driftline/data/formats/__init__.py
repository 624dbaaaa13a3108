"""Readers of file formats that several datasets share."""
