"""Flex templates: what Dataflow needs to let people launch the pipelines without Python at hand."""
